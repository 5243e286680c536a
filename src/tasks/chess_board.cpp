#include "tasks/chess_board.h"

#include <cctype>
#include <cstdlib>
#include <initializer_list>
#include <sstream>

#include "base/error.h"

namespace lrnn::tasks {
namespace {

struct Direction {
  int file, rank;
};
constexpr Direction kDirections[] = {{0, 1},   {0, -1},  {1, 0},  {-1, 0},   // rook
                                     {1, 1},   {1, -1},  {-1, 1}, {-1, -1},  // bishop
                                     {1, 2},   {2, 1},   {2, -1}, {1, -2},   // knight
                                     {-1, -2}, {-2, -1}, {-2, 1}, {-1, 2}};

// Where in kDirections a piece's ways begin and end, and whether it slides.
struct Ways {
  int begin, end;
  bool slides;
};
Ways ways(char kind) {
  switch (kind) {
    case 'r': return {0, 4, true};
    case 'b': return {4, 8, true};
    case 'q': return {0, 8, true};
    case 'k': return {0, 8, false};
    case 'n': return {8, 16, false};
    default: return {0, 0, false};
  }
}

char kind_of(char piece) { return char(std::tolower(piece)); }
bool is_white(char piece) { return std::isupper(static_cast<unsigned char>(piece)) != 0; }

// The square one step away, or -1 outside the board.
int step(int square, Direction d) {
  const int file = square % 8 + d.file, rank = square / 8 + d.rank;
  return file < 0 || file > 7 || rank < 0 || rank > 7 ? -1 : rank * 8 + file;
}

// Home squares of the kings, and for each castling right the rook's.
constexpr int kHomeOfKing[] = {4, 60};
constexpr int kHomeOfRook[] = {7, 0, 63, 56};

}  // namespace

std::string square_name(int square) { return {char('a' + square % 8), char('1' + square / 8)}; }

ChessBoard::ChessBoard(const std::string& fen) {
  std::istringstream in(fen);
  std::string pieces, side, rights, passed;
  in >> pieces >> side >> rights >> passed;
  squares_.fill('.');
  int file = 0, rank = 7;
  for (const char c : pieces) {
    if (c == '/') {
      --rank, file = 0;
    } else if (std::isdigit(static_cast<unsigned char>(c))) {
      file += c - '0';
    } else {
      check(rank >= 0 && file < 8, "'", fen, "' is not a chess position");
      squares_[size_t(rank * 8 + file++)] = c;
    }
  }
  white_ = side != "b";
  for (size_t i = 0; i < 4; ++i) castling_[i] = rights.find("KQkq"[i]) != std::string::npos;
  if (passed.size() == 2) passed_ = (passed[1] - '1') * 8 + passed[0] - 'a';
}

bool ChessBoard::own(int square) const {
  return at(square) != '.' && is_white(at(square)) == white_;
}
bool ChessBoard::enemy(int square) const {
  return at(square) != '.' && is_white(at(square)) != white_;
}

int ChessBoard::king(bool white) const {
  for (int square = 0; square < 64; ++square)
    if (at(square) == (white ? 'K' : 'k')) return square;
  throw Error("a chess position needs both kings");
}

// Looks from the square outwards: a rook that could be reached as a rook attacks it.
bool ChessBoard::attacked(int square, bool by_white) const {
  for (int i = 0; i < 16; ++i) {
    int distance = 0;
    for (int to = step(square, kDirections[i]); to >= 0; to = step(to, kDirections[i])) {
      ++distance;
      if (at(to) != '.') {
        const char kind = kind_of(at(to));
        const Ways w = ways(kind);
        const bool theirs = is_white(at(to)) == by_white;
        if (theirs && w.begin <= i && i < w.end && (w.slides || distance == 1)) return true;
        break;
      }
      if (i >= 8) break;  // a knight jumps once
    }
  }
  for (const int side : {-1, 1}) {
    const int from = step(square, {side, by_white ? -1 : 1});
    if (from >= 0 && at(from) == (by_white ? 'P' : 'p')) return true;
  }
  return false;
}

void ChessBoard::pawn_moves(int from, std::vector<ChessMove>& out) const {
  const int forward = white_ ? 1 : -1, home = white_ ? 1 : 6, last = white_ ? 7 : 0;
  const auto add = [&](int to) {
    if (to / 8 != last) return out.push_back({from, to, 0});
    for (const char piece : {'n', 'b', 'r', 'q'}) out.push_back({from, to, piece});
  };
  const int one = step(from, {0, forward});
  if (one >= 0 && at(one) == '.') {
    add(one);
    const int two = step(one, {0, forward});
    if (from / 8 == home && at(two) == '.') add(two);
  }
  for (const int side : {-1, 1}) {
    const int to = step(from, {side, forward});
    if (to >= 0 && (enemy(to) || to == passed_)) add(to);
  }
}

void ChessBoard::piece_moves(int from, std::vector<ChessMove>& out) const {
  const Ways w = ways(kind_of(at(from)));
  for (int i = w.begin; i < w.end; ++i)
    for (int to = step(from, kDirections[i]); to >= 0 && !own(to); to = step(to, kDirections[i])) {
      out.push_back({from, to, 0});
      if (enemy(to) || !w.slides) break;
    }
}

// Nothing between king and rook, and the king neither in check nor crossing an attacked square;
// where it lands is looked at like any other move.
void ChessBoard::castling_moves(std::vector<ChessMove>& out) const {
  const int home = kHomeOfKing[white_ ? 0 : 1];
  for (size_t side = 0; side < 2; ++side) {
    const size_t right = (white_ ? 0 : 2) + side;
    if (!castling_[right]) continue;
    const int rook = kHomeOfRook[right], towards = side == 0 ? 1 : -1;
    bool free = true;
    for (int square = home + towards; square != rook; square += towards)
      free = free && at(square) == '.';
    if (free && !attacked(home, !white_) && !attacked(home + towards, !white_))
      out.push_back({home, home + 2 * towards, 0});
  }
}

std::vector<ChessMove> ChessBoard::candidates() const {
  std::vector<ChessMove> out;
  for (int from = 0; from < 64; ++from) {
    if (!own(from)) continue;
    if (kind_of(at(from)) == 'p')
      pawn_moves(from, out);
    else
      piece_moves(from, out);
  }
  castling_moves(out);
  return out;
}

bool ChessBoard::legal(const ChessMove& candidate) const {
  ChessBoard after = *this;
  after.play(candidate);
  return !after.attacked(after.king(white_), !white_);
}

std::vector<ChessMove> ChessBoard::moves() const {
  std::vector<ChessMove> out;
  for (const auto& move : candidates())
    if (legal(move)) out.push_back(move);
  return out;
}

void ChessBoard::play(const ChessMove& move) {
  auto put = [&](int square, char piece) { squares_[size_t(square)] = piece; };
  const char piece = at(move.from), kind = kind_of(piece);
  const int distance = move.to - move.from;
  if (kind == 'p' && move.to == passed_) put(move.to - (white_ ? 8 : -8), '.');
  put(move.to,
      move.promotion ? char(white_ ? std::toupper(move.promotion) : move.promotion) : piece);
  put(move.from, '.');
  if (kind == 'k' && std::abs(distance) == 2) {
    const int rook = distance > 0 ? move.from + 3 : move.from - 4;
    put(move.from + distance / 2, at(rook));
    put(rook, '.');
  }
  passed_ = kind == 'p' && std::abs(distance) == 16 ? move.from + distance / 2 : -1;
  // A king or rook that leaves its home, or is taken there, ends the right.
  for (size_t right = 0; right < 4; ++right)
    for (const int home : {kHomeOfKing[right / 2], kHomeOfRook[right]})
      if (move.from == home || move.to == home) castling_[right] = false;
  white_ = !white_;
}

}  // namespace lrnn::tasks
