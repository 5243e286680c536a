#include "automata/algebra/group.h"

#include <algorithm>
#include <charconv>

#include "automata/algebra/permutation.h"
#include "base/error.h"

namespace lrnn::automata {
namespace {

using LawPtr = std::shared_ptr<const Group::Law>;
constexpr int64_t kTable = 512;  // largest order whose product is tabulated
constexpr size_t kLongestName = 80;
constexpr int64_t kTransitions = 4000000;  // largest automaton made of a group

// By name or number.
int64_t found(const Group::Law& law, const std::string& text) {
  if (text == "e" || text == "()") return 0;
  int64_t id = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  const bool number = !text.empty() && text[0] != '-' && end == text.data() + text.size();
  if (number) return error == std::errc() && id < law.order() ? id : -1;
  return law.find(text);
}

class Symmetric final : public Group::Law {
 public:
  explicit Symmetric(int64_t n) : n_(n) {
    for (int64_t id = 0; id < factorial(n); ++id) elements_.push_back(unrank(id, n));
  }
  int64_t order() const override { return static_cast<int64_t>(elements_.size()); }
  int64_t product(int64_t a, int64_t b) const override { return rank(compose(at(a), at(b))); }
  int64_t inverse(int64_t a) const override { return rank(automata::inverse(at(a))); }
  std::string element(int64_t a) const override { return cycles(at(a)); }
  std::string one_line(int64_t a) const override { return automata::one_line(at(a)); }
  int64_t find(const std::string& text) const override {
    const auto p = find_permutation(text, static_cast<int>(n_));
    return p ? rank(*p) : -1;
  }
  std::vector<int64_t> generators() const override {
    if (n_ < 2) return {};
    Permutation swap = at(0), turn = at(0);
    std::swap(swap[0], swap[1]);
    std::rotate(turn.begin(), turn.begin() + 1, turn.end());
    if (n_ == 2) return {rank(swap)};
    return {rank(swap), rank(turn)};
  }

 private:
  const Permutation& at(int64_t a) const { return elements_[static_cast<size_t>(a)]; }
  int64_t n_;
  std::vector<Permutation> elements_;
};

// Permutations 2i and 2i+1 differ by a swap of the last two points, so one of them is even, and
// half the rank numbers the even ones in order.
class Alternating final : public Group::Law {
 public:
  explicit Alternating(int64_t n) : n_(n) {
    for (int64_t id = 0; id < factorial(n); ++id) {
      auto p = unrank(id, n);
      if (even(p)) elements_.push_back(std::move(p));
    }
  }
  int64_t order() const override { return static_cast<int64_t>(elements_.size()); }
  int64_t product(int64_t a, int64_t b) const override { return rank(compose(at(a), at(b))) / 2; }
  int64_t inverse(int64_t a) const override { return rank(automata::inverse(at(a))) / 2; }
  std::string element(int64_t a) const override { return cycles(at(a)); }
  std::string one_line(int64_t a) const override { return automata::one_line(at(a)); }
  int64_t find(const std::string& text) const override {
    const auto p = find_permutation(text, static_cast<int>(n_));
    return p && even(*p) ? rank(*p) / 2 : -1;
  }
  std::vector<int64_t> generators() const override {
    std::vector<int64_t> out;
    for (size_t k = 2; k < static_cast<size_t>(n_); ++k) {
      Permutation p = at(0);  // the cycle (1 2 k+1)
      p[0] = 1, p[1] = static_cast<int>(k), p[k] = 0;
      out.push_back(rank(p) / 2);
    }
    return out;
  }

 private:
  const Permutation& at(int64_t a) const { return elements_[static_cast<size_t>(a)]; }
  int64_t n_;
  std::vector<Permutation> elements_;
};

class Cyclic final : public Group::Law {
 public:
  explicit Cyclic(int64_t m) : m_(m) {}
  int64_t order() const override { return m_; }
  int64_t product(int64_t a, int64_t b) const override { return (a + b) % m_; }
  int64_t inverse(int64_t a) const override { return (m_ - a) % m_; }
  std::string element(int64_t a) const override { return std::to_string(a); }
  std::vector<int64_t> generators() const override {
    return m_ == 1 ? std::vector<int64_t>{} : std::vector<int64_t>{1};
  }

 private:
  int64_t m_;
};

class Dihedral final : public Group::Law {
 public:
  explicit Dihedral(int64_t n) : n_(n) {}
  int64_t order() const override { return 2 * n_; }
  // s^p r^i * s^q r^j = s^(p+q) r^(j + i or -i), because r^i s = s r^-i.
  int64_t product(int64_t a, int64_t b) const override {
    const int64_t i = a % n_, j = b % n_;
    const bool p = a >= n_, q = b >= n_;
    return (p != q ? n_ : 0) + (j + (q ? n_ - i : i)) % n_;
  }
  int64_t inverse(int64_t a) const override { return a >= n_ ? a : (n_ - a) % n_; }
  std::string element(int64_t a) const override {
    const int64_t i = a % n_;
    const std::string r = i == 0 ? "" : i == 1 ? "r" : "r^" + std::to_string(i);
    return a == 0 ? "e" : (a >= n_ ? "s" : "") + r;
  }
  std::vector<int64_t> generators() const override {
    return n_ == 1 ? std::vector<int64_t>{1} : std::vector<int64_t>{1, n_};
  }

 private:
  int64_t n_;
};

// 1, -1, i, -i, j, -j, k, -k in this order.
class Quaternion final : public Group::Law {
 public:
  int64_t order() const override { return 8; }
  int64_t product(int64_t a, int64_t b) const override {
    const int64_t p = a / 2, q = b / 2;
    // i j = k and round the circle; backwards, and for squares, the sign changes.
    const bool minus = p && q && (p == q || (q - p + 3) % 3 == 2);
    return 2 * (p ^ q) + ((a + b + minus) % 2);
  }
  int64_t inverse(int64_t a) const override { return a < 2 ? a : a ^ 1; }
  std::string element(int64_t a) const override {
    static const char* names[] = {"e", "-1", "i", "-i", "j", "-j", "k", "-k"};
    return names[a];
  }
  std::vector<int64_t> generators() const override { return {2, 4}; }
};

class Direct final : public Group::Law {
 public:
  Direct(LawPtr left, LawPtr right)
      : left_(std::move(left)), right_(std::move(right)), n_(right_->order()) {}
  int64_t order() const override { return left_->order() * n_; }
  int64_t product(int64_t a, int64_t b) const override {
    return left_->product(a / n_, b / n_) * n_ + right_->product(a % n_, b % n_);
  }
  int64_t inverse(int64_t a) const override {
    return left_->inverse(a / n_) * n_ + right_->inverse(a % n_);
  }
  std::string element(int64_t a) const override {
    return "[" + left_->element(a / n_) + "," + right_->element(a % n_) + "]";
  }
  // Of three factors the left one is a pair itself: [[(12),4],r].
  int64_t find(const std::string& text) const override {
    if (text.size() < 2 || text.front() != '[' || text.back() != ']') return -1;
    const auto pair = outer_list(text.substr(1, text.size() - 2));
    if (pair.size() != 2) return -1;
    const int64_t a = found(*left_, pair[0]), b = found(*right_, pair[1]);
    return a < 0 || b < 0 ? -1 : a * n_ + b;
  }
  std::vector<int64_t> generators() const override {
    std::vector<int64_t> out;
    for (const int64_t a : left_->generators()) out.push_back(a * n_);
    for (const int64_t b : right_->generators()) out.push_back(b);
    return out;
  }

 private:
  LawPtr left_, right_;
  int64_t n_;
};

[[noreturn]] void no_group(const std::string& name) {
  throw Error(
      cat("'", name, "' is not the name of a group"),
      "groups are S5, A5, Z60, D4, Q8, products such as A4_x_Z5, and what permutations such "
      "as (123456),(12) generate");
}

[[noreturn]] void too_large(const std::string& name) {
  throw Error(cat("the group '", name, "' has more than ", Group::kLargest, " elements"),
              "the largest ones are S7, A7, Z10000, D5000 and products within that size");
}

// The number after the letter: digits only, from 1, without a leading zero.
int64_t number(const std::string& name, const std::string& factor) {
  int64_t n = 0;
  const char *begin = factor.data() + 1, *end = factor.data() + factor.size();
  const bool digits = std::all_of(begin, end, [](char c) { return c >= '0' && c <= '9'; });
  if (!digits || begin == end || *begin == '0') no_group(name);
  if (std::from_chars(begin, end, n).ec != std::errc()) too_large(name);
  return n;
}

LawPtr parse_factor(const std::string& name, const std::string& factor) {
  if (factor == "Q8") return std::make_shared<Quaternion>();
  const char letter = factor.empty() ? ' ' : factor[0];
  if (letter != 'S' && letter != 'A' && letter != 'Z' && letter != 'D') no_group(name);
  const int64_t n = number(name, factor);
  const int64_t largest = letter == 'Z' ? Group::kLargest : letter == 'D' ? Group::kLargest / 2 : 7;
  if (n > largest) too_large(name);
  if (letter == 'S') return std::make_shared<Symmetric>(n);
  if (letter == 'A') return std::make_shared<Alternating>(n);
  if (letter == 'Z') return std::make_shared<Cyclic>(n);
  return std::make_shared<Dihedral>(n);
}

LawPtr parse(const std::string& name) {
  const std::string times = "_x_";
  // Factors of order 1 would let a product grow without end.
  if (name.size() > kLongestName) no_group(name.substr(0, kLongestName) + "...");
  if (!name.empty() && name[0] == '(') return generated_law(name);
  LawPtr law;
  for (size_t begin = 0, end = 0; end != std::string::npos; begin = end + times.size()) {
    end = name.find(times, begin);
    LawPtr factor = parse_factor(name, name.substr(begin, end - begin));
    law = law ? std::make_shared<Direct>(law, factor) : factor;
    if (law->order() > Group::kLargest) too_large(name);
  }
  return law;
}

}  // namespace

Group::Group(const std::string& name) : name_(name), law_(parse(name)), order_(law_->order()) {
  if (order_ > kTable) return;
  for (int64_t a = 0; a < order_; ++a)
    for (int64_t b = 0; b < order_; ++b)
      table_.push_back(static_cast<uint16_t>(law_->product(a, b)));
}

int64_t Group::find(const std::string& text) const { return found(*law_, text); }

int64_t Group::Law::find(const std::string& text) const {
  for (int64_t a = 0; a < order(); ++a)
    if (element(a) == text) return a;
  return -1;
}

Automaton right_multiplication(const Group& group, std::vector<int64_t> letters) {
  if (letters.empty())
    for (int64_t a = 0; a < group.order(); ++a) letters.push_back(a);
  const int64_t n = group.order(), symbols = static_cast<int64_t>(letters.size());
  for (const int64_t a : letters)
    check(a >= 0 && a < n, a, " is not an element of ", group.name(), ", whose ids are 0 .. ",
          n - 1);
  if (n * symbols > kTransitions)
    throw Error(cat("the automaton of ", group.name(), " has ", n * symbols,
                    " transitions, more than ", kTransitions),
                "read fewer letters, such as the generators");
  auto out = Automaton::from(n, symbols, [&](int64_t y, int64_t x) {
    return group.product(y, letters[static_cast<size_t>(x)]);
  });
  out.start = group.identity();
  for (int64_t y = 0; y < n; ++y) out.state_names.push_back(group.element(y));
  for (const int64_t a : letters) out.symbol_names.push_back(group.element(a));
  return out;
}

}  // namespace lrnn::automata
