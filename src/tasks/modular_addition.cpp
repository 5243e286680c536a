#include "tasks/follow.h"
#include "tasks/keys.h"

// The running sum of numbers modulo m.
namespace lrnn::tasks {
namespace {

constexpr int64_t kLargestModulus = 10000;

struct Config {
  int64_t modulus = 3;
  bool bos = true;
  TrainKeys<32, 32> train;
  EvalKeys<128, 128, 2048> eval;
  template <class Visit> void fields(Visit&& visit) {
    visit("modulus", modulus, "numbers are 0 .. modulus-1, and so is their sum",
          between(2, kLargestModulus));
    visit("bos", bos, "a token of its own before the first number, in inputs and targets");
    visit_both(visit, train, eval);
  }

  MutableTask make() const {
    AskEach q;
    q.symbols = modulus;
    q.step = [m = modulus](int64_t sum, int64_t x) { return (sum + x) % m; };
    for (int64_t i = 0; i < modulus; ++i) q.words.push_back(std::to_string(i));
    if (bos) {
      q.bos = modulus;
      q.words.push_back("BOS");
    }
    return follow(std::move(q));
  }
};

}  // namespace

Entry entry_modular_addition(const char* name, const char* about) {
  return entry<Config>(name, about);
}

}  // namespace lrnn::tasks
