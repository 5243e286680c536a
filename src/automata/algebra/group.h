#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "automata/automaton.h"

namespace lrnn::automata {

// A finite group whose elements are the numbers 0 .. order-1; 0 is the identity.
//
//   S3         permutations of 1..n in lexicographic order of one-line notation;
//              a*b applies b first: (a*b)(i) = a(b(i))
//   A4         the even ones among them, renumbered in that order
//   Z60        residues under addition
//   D4         symmetries of the n-gon: i is the rotation r^i, n+i the reflection s r^i;
//              r s = s r^-1
//   Q8         1, -1, i, -i, j, -j, k, -k
//   A4_x_Z5    direct product, any number of factors: id = id1 * |G2| + id2
//   (123),(12) what these permutations generate, in lexicographic order of one-line notation;
//              points above 9 are written with spaces: (1 2 10)
class Group {
 public:
  static constexpr int64_t kLargest = 10000;

  explicit Group(const std::string& name);

  const std::string& name() const { return name_; }
  int64_t order() const { return order_; }
  int64_t identity() const { return 0; }
  int64_t product(int64_t a, int64_t b) const {
    return table_.empty() ? law_->product(a, b) : table_[static_cast<size_t>(a * order_ + b)];
  }
  int64_t inverse(int64_t a) const { return law_->inverse(a); }
  std::vector<int64_t> generators() const { return law_->generators(); }

  // What a person reads: cycles "(123)(45)", a residue "7", "sr^2", a pair "[(12),4]"; "e" is the
  // identity of everything but Z_m.
  std::string element(int64_t a) const { return law_->element(a); }
  // Of permutations: "2 1 3" says where 1, 2 and 3 go. Empty for other groups.
  std::string one_line(int64_t a) const { return law_->one_line(a); }
  // The element that is written so: by its name, with spaces or commas between points if one likes,
  // or by its number; "e" and "()" are the identity. -1 when there is none. Throws when it looks
  // like a permutation and is none.
  int64_t find(const std::string& text) const;

  // One kind of group. Elements come in as 0 .. order-1, always.
  class Law {
   public:
    virtual ~Law() = default;
    virtual int64_t order() const = 0;
    virtual int64_t product(int64_t a, int64_t b) const = 0;
    virtual int64_t inverse(int64_t a) const = 0;
    virtual std::string element(int64_t a) const = 0;
    virtual std::string one_line(int64_t) const { return {}; }
    virtual int64_t find(const std::string& text) const;  // by name; -1: none
    virtual std::vector<int64_t> generators() const = 0;
  };

 private:
  std::string name_;
  std::shared_ptr<const Law> law_;
  int64_t order_ = 0;
  std::vector<uint16_t> table_;  // of small groups only: looking up beats ranking permutations
};

// Reading letters[x] in state y leads to y * letters[x]; the start is the identity. Without
// letters every element is one.
Automaton right_multiplication(const Group& group, std::vector<int64_t> letters = {});

// The group of permutations such as "(123)(45),(12)": see Group.
std::shared_ptr<const Group::Law> generated_law(const std::string& name);

}  // namespace lrnn::automata
