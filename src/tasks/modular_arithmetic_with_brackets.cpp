#include <algorithm>

#include "tasks/keys.h"
#include "tasks/tell.h"

namespace lrnn::tasks {
namespace {

// "-d", '=', the answer and one PAD: lengths below collapse to this one, as published.
constexpr int64_t kBracketsLeast = 5, kBracketsShortest = 3;
constexpr int64_t kBracketsLargestModulus = 100;

// Digits come first here, unlike in modular_arithmetic; PAD is last.
struct BracketIds {
  int64_t m;
  int64_t plus() const { return m; }
  int64_t minus() const { return m + 1; }
  int64_t times() const { return m + 2; }
  int64_t open() const { return m + 3; }
  int64_t close() const { return m + 4; }
  int64_t equals() const { return m + 5; }
};

class BracketWriter {
 public:
  BracketWriter(Random& random, BracketIds id, bool mult, Writer& to)
      : random_(random), id_(id), mult_(mult), to_(to) {}

  // Writes exactly `length` tokens; the result is their value.
  int64_t expression(int64_t length) {
    if (length == 1) return digit();
    if (length == 2) return to_.say(id_.minus()), (id_.m - digit()) % id_.m;
    to_.say(id_.open());
    const int64_t value = length < 5 ? expression(length - 2) : operation(length - 3);
    to_.say(id_.close());
    return value;
  }

 private:
  int64_t digit() {
    const int64_t d = random_.between(0, id_.m - 1);
    to_.say(d);
    return d;
  }

  int64_t operation(int64_t length) {
    const int64_t left = random_.between(1, length - 1);
    const int64_t a = expression(left);
    const auto op = to_.out.input.size();
    to_.say(0);
    const int64_t b = expression(length - left);
    const int64_t which = random_.between(id_.plus(), mult_ ? id_.times() : id_.minus());
    to_.out.input[op] = which;
    if (which == id_.plus()) return (a + b) % id_.m;
    if (which == id_.minus()) return (a - b + id_.m) % id_.m;
    return a * b % id_.m;
  }

  Random& random_;
  BracketIds id_;
  bool mult_;
  Writer& to_;
};

struct BracketsConfig {
  int64_t modulus = 5;
  bool mult = false;
  TrainKeys<3, 40, kBracketsShortest> train;
  EvalKeys<40, 256, 8192, kBracketsShortest> eval;
  template <class Visit> void fields(Visit&& visit) {
    visit("modulus", modulus, "digits are 0 .. modulus-1, and so is the answer",
          between(2, kBracketsLargestModulus));
    visit("mult", mult, "also multiply: the paper's last version does, its code does not");
    visit_both(visit, train, eval);
  }

  std::shared_ptr<Task> make() const {
    Tell story;
    for (int64_t d = 0; d < modulus; ++d) story.words.push_back(std::to_string(d));
    for (const char* word : {"+", "-", "*", "(", ")", "=", "PAD"}) story.words.push_back(word);
    story.answers = modulus;
    story.shortest = kBracketsShortest;
    story.draw = [id = BracketIds{modulus}, mult = mult](Random& random, Range length) {
      Writer to;
      to.out.length = std::max(random.between(length.lo, length.hi), kBracketsLeast);
      const int64_t value = BracketWriter(random, id, mult, to).expression(to.out.length - 3);
      to.ask(id.equals(), value);
      return to.out;
    };
    return tell(std::move(story));
  }
};

}  // namespace

Entry entry_modular_arithmetic_with_brackets(const char* name, const char* about) {
  return entry<BracketsConfig>(name, about);
}

}  // namespace lrnn::tasks
