#include <gtest/gtest.h>

#include <cctype>
#include <cmath>
#include <map>
#include <sstream>

#include "tasks/chess_board.h"
#include "tasks/task.h"

namespace lrnn::tasks {
namespace {

int64_t perft(const ChessBoard& board, int depth) {
  if (depth == 0) return 1;
  int64_t out = 0;
  for (const auto& move : board.moves()) {
    ChessBoard after = board;
    after.play(move);
    out += perft(after, depth - 1);
  }
  return out;
}

// How many games of so many moves there are: numbers every chess program agrees on, in positions
// chosen for their castling, en passant, promotion and pins.
TEST(ChessBoard, CountsGamesAsEverybodyDoes) {
  EXPECT_EQ(perft(ChessBoard(), 1), 20);
  EXPECT_EQ(perft(ChessBoard(), 2), 400);
  EXPECT_EQ(perft(ChessBoard(), 3), 8902);
  const ChessBoard kiwipete("r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq -");
  EXPECT_EQ(perft(kiwipete, 1), 48);
  EXPECT_EQ(perft(kiwipete, 2), 2039);
  EXPECT_EQ(perft(kiwipete, 3), 97862);
  const ChessBoard pins("8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - -");
  EXPECT_EQ(perft(pins, 2), 191);
  EXPECT_EQ(perft(pins, 4), 43238);
  const ChessBoard promotions("r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq -");
  EXPECT_EQ(perft(promotions, 2), 264);
  EXPECT_EQ(perft(promotions, 3), 9467);
  const ChessBoard talkchess("rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ -");
  EXPECT_EQ(perft(talkchess, 2), 1486);
  EXPECT_EQ(perft(talkchess, 3), 62379);
}

TEST(ChessBoard, KnowsMateAndStalemate) {
  ChessBoard fool;
  for (const auto& [from, to] : {std::pair{13, 21}, {52, 36}, {14, 30}, {59, 31}})
    fool.play({from, to, 0});
  EXPECT_TRUE(fool.moves().empty());
  EXPECT_TRUE(fool.in_check());
  const ChessBoard stalemate("7k/5Q2/6K1/8/8/8/8/8 b - -");
  EXPECT_TRUE(stalemate.moves().empty());
  EXPECT_FALSE(stalemate.in_check());
}

// A board that knows nothing of legality: it moves what the printed line says, and what else must
// move follows from the shape of the move alone.
class Scoresheet {
 public:
  std::map<std::string, char> on;
  int castled = 0, passed = 0, promoted = 0;

  void start() {
    on.clear();
    for (int file = 0; file < 8; ++file) {
      const std::string f(1, char('a' + file));
      on[f + "1"] = "RNBQKBNR"[file], on[f + "2"] = 'P';
      on[f + "7"] = 'p', on[f + "8"] = "rnbqkbnr"[file];
    }
  }
  void move(const std::string& from, const std::string& to, char piece_after) {
    const char piece = on.at(from);
    if ((piece == 'P' || piece == 'p') && from[0] != to[0] && !on.contains(to)) {
      ASSERT_EQ(on.erase(std::string{to[0], from[1]}), 1u);
      ++passed;
    }
    if ((piece == 'K' || piece == 'k') && std::abs(from[0] - to[0]) == 2) {
      const bool short_side = to[0] == 'g';
      const std::string rook{short_side ? 'h' : 'a', from[1]};
      on[{short_side ? 'f' : 'd', from[1]}] = on.at(rook);
      on.erase(rook);
      ++castled;
    }
    on.erase(from);
    on[to] = piece_after ? piece_after : piece;
    promoted += piece_after != 0;
  }
};

TEST(Chess, AnswersWhatAScoresheetSays) {
  const auto t = make(Section::from_text("{name: chess, eval: {length: 300}}"));
  Scoresheet sheet;
  int64_t games = 0;
  double empty = 0, questions = 0;
  for (uint64_t i = 0; i < 150; ++i) {
    const auto e = t->sample(1, i % 5 ? Split::kTrain : Split::kEval, i);
    std::istringstream in(t->text(e));
    std::string from, to, next, mark, answer;
    int64_t moves = 0;
    bool white = true;
    while (in >> from) {
      if (from == "game") {
        sheet.start();
        white = true;
        ++games;
        continue;
      }
      in >> to >> next;
      char becomes = 0;
      if (next[0] == '=') {
        becomes = white ? next[1] : char(std::tolower(next[1]));
        in >> next;
      }
      ASSERT_TRUE(sheet.on.contains(from)) << t->text(e);
      ASSERT_EQ(std::isupper(sheet.on.at(from)) != 0, white);
      sheet.move(from, to, becomes);
      white = !white;
      ++moves;
      in >> mark >> mark >> answer;
      ASSERT_EQ(answer, sheet.on.contains(next) ? std::string(1, sheet.on.at(next)) : ".");
      empty += answer == ".", ++questions;
      in >> mark;
    }
    ASSERT_EQ(moves, e.length);
  }
  EXPECT_GT(sheet.castled, 0);
  EXPECT_GT(sheet.passed, 0);
  EXPECT_GT(sheet.promoted, 0);
  EXPECT_GT(games, 150) << "some game must end before move 300";
  EXPECT_NEAR(empty / questions, 0.5, 5 * 0.5 / std::sqrt(questions));
}

// The twenty first moves of White come equally often.
TEST(Chess, MovesAreUniform) {
  const auto t = make(Section::from_text("{name: chess, train: {length: 1}}"));
  std::map<std::pair<int64_t, int64_t>, double> seen;
  for (uint64_t i = 0; i < 20000; ++i) {
    const auto e = t->sample(1, Split::kTrain, i);
    ++seen[{e.input[1], e.input[2]}];
  }
  EXPECT_EQ(seen.size(), 20u);
  for (const auto& [move, n] : seen) EXPECT_NEAR(n, 1000, 5 * std::sqrt(950.0));
}

}  // namespace
}  // namespace lrnn::tasks
