#include "tasks/keys.h"
#include "tasks/tell.h"

namespace lrnn::tasks {
namespace {

constexpr int64_t kMostVariables = 26;

enum ProgramMark : int64_t { kComma, kAssign, kEndOfLine, kPrint };

// x[1] = b ; x[2] = a ; x[1] , x[2] = x[2] , x[1] ; print x[2] -> b
Example draw_program(Random& random, Range length, HolderIds id) {
  const int64_t comma = id.word(kComma), becomes = id.word(kAssign), end = id.word(kEndOfLine);
  Writer to;
  auto x = shuffled(random, id.n);
  for (int64_t i = 0; i < id.n; ++i) to.say({id.holder(i), becomes, id.thing(x[size_t(i)]), end});
  to.out.length = random.between(length.lo, length.hi);
  for (int64_t line = 0; line < to.out.length; ++line) {
    const auto [a, b] = two_of(random, id.n);
    const int64_t left = id.holder(a), right = id.holder(b);
    to.say({left, comma, right, becomes, right, comma, left, end});
    std::swap(x[size_t(a)], x[size_t(b)]);
  }
  const int64_t asked = random.between(0, id.n - 1);
  to.say(id.word(kPrint));
  to.ask(id.holder(asked), id.thing(x[size_t(asked)]));
  return to.out;
}

struct ProgramConfig {
  int64_t variables = 4;
  TrainKeys<1, 10> train;
  EvalKeys<10, 64, 4096> eval;
  template <class Visit> void fields(Visit&& visit) {
    visit("variables", variables, "x[1] .. x[n], each with a value of its own",
          between(2, kMostVariables));
    visit_both(visit, train, eval, "what it is trained on; a length counts swaps");
  }

  std::shared_ptr<Task> make() const {
    Tell story;
    for (int64_t i = 1; i <= variables; ++i) story.words.push_back(cat("x[", i, "]"));
    for (int64_t i = 0; i < variables; ++i) story.words.emplace_back(1, char('a' + i));
    for (const char* word : {",", "=", ";", "print"}) story.words.push_back(word);
    story.answers = variables;
    story.draw = [id = HolderIds{variables}](Random& random, Range length) {
      return draw_program(random, length, id);
    };
    return tell(std::move(story));
  }
};

}  // namespace

Entry entry_swap_program(const char* name, const char* about) {
  return entry<ProgramConfig>(name, about);
}

}  // namespace lrnn::tasks
