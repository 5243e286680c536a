#include "tasks/keys.h"
#include "tasks/tell.h"

namespace lrnn::tasks {
namespace {

constexpr int64_t kMostVariables = 26;

// Ids: the variables, their values, then the marks.
struct ProgramIds {
  int64_t n;
  int64_t variable(int64_t i) const { return i; }
  int64_t value(int64_t i) const { return n + i; }
  int64_t comma() const { return 2 * n; }
  int64_t becomes() const { return 2 * n + 1; }
  int64_t end() const { return 2 * n + 2; }
  int64_t print() const { return 2 * n + 3; }
};

// x[1] = b ; x[2] = a ; x[1] , x[2] = x[2] , x[1] ; print x[2] -> b
Example draw_program(Random& random, Range length, ProgramIds id) {
  Writer to;
  auto x = shuffled(random, id.n);
  for (int64_t i = 0; i < id.n; ++i)
    for (const int64_t token : {id.variable(i), id.becomes(), id.value(x[size_t(i)]), id.end()})
      to.say(token);
  to.out.length = random.between(length.lo, length.hi);
  for (int64_t line = 0; line < to.out.length; ++line) {
    const auto [a, b] = two_of(random, id.n);
    for (const int64_t token : {id.variable(a), id.comma(), id.variable(b), id.becomes(),
                                id.variable(b), id.comma(), id.variable(a), id.end()})
      to.say(token);
    std::swap(x[size_t(a)], x[size_t(b)]);
  }
  const int64_t asked = random.between(0, id.n - 1);
  to.say(id.print());
  to.ask(id.variable(asked), id.value(x[size_t(asked)]));
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
    story.draw = [id = ProgramIds{variables}](Random& random, Range length) {
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
