#include "tasks/chess_board.h"
#include "tasks/keys.h"
#include "tasks/tell.h"

namespace lrnn::tasks {
namespace {

// Ids: the squares, what a pawn becomes, the beginning of a game, the question, and its answers.
enum ChessToken : int64_t { kPromote = 64, kGame = 68, kWhat, kEmpty, kPieces };
constexpr const char kBecomes[] = "nbrq";
constexpr const char kPieceNames[] = "PNBRQKpnbrqk";

// Any legal move, each as likely; false when there is none: mate or stalemate. Candidates are tried
// in a random order, which is quicker than finding out about all of them first.
bool play_any(Random& random, ChessBoard& board, ChessMove& played) {
  for (auto all = board.candidates(); !all.empty(); all.pop_back()) {
    std::swap(all[size_t(random.below(all.size()))], all.back());
    if (!board.legal(all.back())) continue;
    board.play(played = all.back());
    return true;
  }
  return false;
}

void write_move(Writer& to, const ChessMove& move) {
  to.say(move.from);
  to.say(move.to);
  for (int64_t i = 0; i < 4; ++i)
    if (move.promotion == kBecomes[i]) to.say(kPromote + i);
}

// Squares with and without a piece are asked for equally often, so that "empty" is no good guess.
void write_question(Random& random, Writer& to, const ChessBoard& board) {
  std::vector<int> squares[2];
  for (int square = 0; square < 64; ++square) squares[board.at(square) != '.'].push_back(square);
  const auto& some = squares[random.below(2)];
  const int square = some[size_t(random.below(some.size()))];
  int64_t answer = kEmpty;
  for (int64_t i = 0; i < 12; ++i)
    if (board.at(square) == kPieceNames[i]) answer = kPieces + i;
  to.say(square);
  to.ask(kWhat, answer);
}

Example draw_game(Random& random, Range length) {
  Writer to;
  to.out.length = random.between(length.lo, length.hi);
  ChessBoard board;
  to.say(kGame);
  for (int64_t ply = 0; ply < to.out.length; ++ply) {
    ChessMove move;
    while (!play_any(random, board, move)) board = ChessBoard(), to.say(kGame);
    write_move(to, move);
    write_question(random, to, board);
  }
  return to.out;
}

struct ChessConfig {
  TrainKeys<1, 40> train;
  EvalKeys<100, 100, 1024> eval;
  template <class Visit> void fields(Visit&& visit) {
    visit_both(visit, train, eval, "what it is trained on; a length counts moves of either side");
  }

  std::shared_ptr<Task> make() const {
    Tell story;
    for (int square = 0; square < 64; ++square) story.words.push_back(square_name(square));
    for (const char* word : {"=N", "=B", "=R", "=Q", "game", "?", "."}) story.words.push_back(word);
    for (const char piece : std::string(kPieceNames)) story.words.emplace_back(1, piece);
    story.score = Score::kPrefix;
    story.draw = draw_game;
    return tell(std::move(story));
  }
};

}  // namespace

Entry entry_chess(const char* name, const char* about) { return entry<ChessConfig>(name, about); }

}  // namespace lrnn::tasks
