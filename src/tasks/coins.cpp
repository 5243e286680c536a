#include "tasks/keys.h"
#include "tasks/tell.h"

namespace lrnn::tasks {
namespace {

constexpr const char* kPeople[] = {"Ann", "Bob", "Cid", "Dee", "Eve", "Fay", "Gus", "Hal"};
constexpr const char* kCoins[] = {"gold", "silver", "copper", "bronze",
                                  "iron", "nickel", "tin",    "zinc"};
constexpr int64_t kMostPeople = 8;

enum CoinWord : int64_t { kHas, kTrades, kHolds };

// Ann has gold Bob has silver Ann trades Bob Ann holds -> silver
Example draw_coins(Random& random, Range length, HolderIds id) {
  Writer to;
  auto coin = shuffled(random, id.n);
  for (int64_t i = 0; i < id.n; ++i)
    to.say({id.holder(i), id.word(kHas), id.thing(coin[size_t(i)])});
  to.out.length = random.between(length.lo, length.hi);
  for (int64_t trade = 0; trade < to.out.length; ++trade) {
    const auto [a, b] = two_of(random, id.n);
    to.say({id.holder(a), id.word(kTrades), id.holder(b)});
    std::swap(coin[size_t(a)], coin[size_t(b)]);
    const int64_t asked = random.between(0, id.n - 1);
    to.say(id.holder(asked));
    to.ask(id.word(kHolds), id.thing(coin[size_t(asked)]));
  }
  return to.out;
}

struct CoinsConfig {
  int64_t people = 5;
  TrainKeys<1, 20> train;
  EvalKeys<64, 64, 2048> eval;
  template <class Visit> void fields(Visit&& visit) {
    visit("people", people, "each begins with a coin of their own", between(2, kMostPeople));
    visit_both(visit, train, eval, "what it is trained on; a length counts trades");
  }

  std::shared_ptr<Task> make() const {
    Tell story;
    story.words.assign(kPeople, kPeople + people);
    story.words.insert(story.words.end(), kCoins, kCoins + people);
    for (const char* word : {"has", "trades", "holds"}) story.words.push_back(word);
    story.score = Score::kPrefix;
    story.draw = [id = HolderIds{people}](Random& random, Range length) {
      return draw_coins(random, length, id);
    };
    return tell(std::move(story));
  }
};

}  // namespace

Entry entry_coins(const char* name, const char* about) { return entry<CoinsConfig>(name, about); }

}  // namespace lrnn::tasks
