#include "tasks/keys.h"
#include "tasks/tell.h"

namespace lrnn::tasks {
namespace {

constexpr const char* kPeople[] = {"Ann", "Bob", "Cid", "Dee", "Eve", "Fay", "Gus", "Hal"};
constexpr const char* kCoins[] = {"gold", "silver", "copper", "bronze",
                                  "iron", "nickel", "tin",    "zinc"};
constexpr int64_t kMostPeople = 8;

// Ids: people, coins, then what is said of them.
struct CoinIds {
  int64_t n;
  int64_t person(int64_t i) const { return i; }
  int64_t coin(int64_t i) const { return n + i; }
  int64_t has() const { return 2 * n; }
  int64_t trades() const { return 2 * n + 1; }
  int64_t holds() const { return 2 * n + 2; }
};

// Ann has gold Bob has silver Ann trades Bob Ann holds -> silver
Example draw_coins(Random& random, Range length, CoinIds id) {
  Writer to;
  auto coin = shuffled(random, id.n);
  for (int64_t i = 0; i < id.n; ++i)
    for (const int64_t token : {id.person(i), id.has(), id.coin(coin[size_t(i)])}) to.say(token);
  to.out.length = random.between(length.lo, length.hi);
  for (int64_t trade = 0; trade < to.out.length; ++trade) {
    const auto [a, b] = two_of(random, id.n);
    for (const int64_t token : {id.person(a), id.trades(), id.person(b)}) to.say(token);
    std::swap(coin[size_t(a)], coin[size_t(b)]);
    const int64_t asked = random.between(0, id.n - 1);
    to.say(id.person(asked));
    to.ask(id.holds(), id.coin(coin[size_t(asked)]));
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
    story.draw = [id = CoinIds{people}](Random& random, Range length) {
      return draw_coins(random, length, id);
    };
    return tell(std::move(story));
  }
};

}  // namespace

Entry entry_coins(const char* name, const char* about) { return entry<CoinsConfig>(name, about); }

}  // namespace lrnn::tasks
