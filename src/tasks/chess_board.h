#pragma once
#include <array>
#include <string>
#include <vector>

namespace lrnn::tasks {

// Squares are 0 .. 63: a1, b1, … h1, a2, … h8.
struct ChessMove {
  int from = 0, to = 0;
  char promotion = 0;  // 'n' 'b' 'r' 'q', or 0
  bool operator==(const ChessMove&) const = default;
};

// A position and the rules that lead to the next one: castling, en passant and promotion included.
// Draws by repetition, material or the fifty-move rule are not ends of a game here.
class ChessBoard {
 public:
  ChessBoard() : ChessBoard("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -") {}
  explicit ChessBoard(const std::string& fen);  // the first four fields

  char at(int square) const { return squares_[size_t(square)]; }  // "PNBRQK", "pnbrqk" or '.'
  bool white() const { return white_; }                           // to move

  // Moves by the way the pieces go; some may leave the own king in check.
  std::vector<ChessMove> candidates() const;
  bool legal(const ChessMove& candidate) const;
  std::vector<ChessMove> moves() const;  // the legal ones
  void play(const ChessMove& move);
  bool in_check() const { return attacked(king(white_), !white_); }

 private:
  bool own(int square) const;
  bool enemy(int square) const;
  bool attacked(int square, bool by_white) const;
  int king(bool white) const;
  void pawn_moves(int from, std::vector<ChessMove>& out) const;
  void piece_moves(int from, std::vector<ChessMove>& out) const;
  void castling_moves(std::vector<ChessMove>& out) const;

  std::array<char, 64> squares_{};
  bool white_ = true;
  // Whether king and rook are unmoved: white short, white long, black short, black long.
  std::array<bool, 4> castling_{};
  int passed_ = -1;  // the square a pawn has just jumped over
};

std::string square_name(int square);  // "e4"

}  // namespace lrnn::tasks
