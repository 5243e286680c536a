#include "automata/group.h"

#include "tasks/follow.h"
#include "tasks/keys.h"

namespace lrnn::tasks {
namespace {

struct Train {
  Range length = {128, 128};
  int64_t set = 0;
  template <class Visit> void fields(Visit&& visit) {
    visit("length", length, "elements in a training sequence");
    visit("set", set, "so many distinct sequences, shuffled in every epoch; 0: always fresh ones");
  }
};

struct Config {
  std::string group = "S3";
  Train train;
  EvalKeys<512, 512, 5000> eval;
  template <class Visit> void fields(Visit&& visit) {
    visit("group", group, "S5, A5, Z60, D4, or a product such as A4_x_Z5");
    visit("train", train, "what it is trained on");
    visit("eval", eval, "what it is tested on");
  }
  void check(const Section& at) const {
    require_lengths(at, *this, 1);
    const int64_t order = read(at).order();
    at.require(order >= 2, "group", "must have at least two elements, got ", group);
    const int64_t most = largest_set(order, train.length.lo);
    at.child("train").require(train.set >= 0 && train.set <= most, "set", "must be between 0 and ",
                              most, " (that many sequences differ), got ", train.set);
  }

  MutableTask make() const {
    const automata::Group g(group);
    AskEach q;
    q.symbols = g.order();
    q.start = g.identity();
    q.step = [g](int64_t y, int64_t x) { return g.product(y, x); };
    for (int64_t a = 0; a < g.order(); ++a) q.words.push_back(g.element(a));
    for (const char* special : {"PAD", "BOS", "UNK", "EOS", "SEP", "CLS", "MASK"})
      q.words.push_back(special);
    q.bos = g.order() + 1;
    q.set = train.set;
    return follow(std::move(q));
  }

 private:
  automata::Group read(const Section& at) const {
    try {
      return automata::Group(group);
    } catch (const Error& e) {
      at.fail("group", cat("cannot be used: ", e.what()), e.hint());
    }
  }
};

}  // namespace

Entry entry_group(const char* name, const char* about) { return entry<Config>(name, about); }

}  // namespace lrnn::tasks
