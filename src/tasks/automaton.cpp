#include "tasks/automaton.h"

#include <unordered_map>

#include "automata/read/text_format.h"
#include "base/random.h"
#include "tasks/follow.h"
#include "tasks/keys.h"

namespace lrnn::tasks {
namespace {

constexpr uint64_t kAutomatonTrain = 0x5'0000'0000'0000, kAutomatonEval = 0x6'0000'0000'0000;

struct Config {
  std::string regex, alphabet, group, letters, example, automaton, answers = "auto";
  int64_t bos = 0;
  TrainKeys<1, 128> train;
  EvalKeys<512, 512, 64> eval;
  template <class Visit> void fields(Visit&& visit) {
    visit("regex", regex, "the words it accepts: the answers are accept and reject");
    visit("alphabet", alphabet, "of the regex: one symbol per character");
    visit("group", group, "or the elements of a group: S5, A5, Z60, …; the answer is the product");
    visit("letters", letters,
          "of the group that are read: all, swaps, generators, or elements such as (12),(123) or "
          "1,5");
    visit("example", example, "or one of the named automata");
    visit("automaton", automaton, "or an automaton as JSON text");
    visit("answers", answers,
          "accept (or reject), or states; auto: accept for a regex and for examples that are "
          "languages",
          {"auto", "accept", "states"});
    visit("bos", bos, "tokens before every word", at_least(0));
    visit_both(visit, train, eval);
  }
  void check(const Section& at) const {
    const int sources = !regex.empty() + !group.empty() + !example.empty() + !automaton.empty();
    at.require(sources <= 1, "automaton",
               "must be the only one of regex, group, example and automaton");
  }

  automata::Subject subject() const {
    auto out = named();
    if (answers == "states") out.recogniser = false;
    if (answers != "accept") return out;
    if (out.automaton.accept.empty())
      throw Error(cat("task.answers is accept, but ", out.title, " does not say what it accepts"),
                  "answers: states follows its states");
    out.recogniser = true;
    return out;
  }
  MutableTask make() const;

 private:
  automata::Subject named() const {
    // By itself JSON means states, accepting ones or not: so it was when runs began to hold it.
    if (!automaton.empty()) {
      const auto a = automata::from_json(automaton, "task.automaton");
      return {"an automaton", automata::reachable(a), false};
    }
    automata::Source source;
    // An alphabet without a regex means the empty one, which is the empty word.
    source.has_regex = !regex.empty() || !alphabet.empty();
    source.regex = regex, source.alphabet = alphabet;
    source.group = group, source.letters = letters, source.example = example;
    if (!source.has_regex && group.empty() && example.empty()) source.group = "Z2";
    return automata::load(source);
  }
};

// Letters are drawn uniformly, but a letter into a state that is never left again is drawn anew, so
// that long words are not all alike.
class Words final : public Task {
 public:
  Words(const automata::Subject& subject, int64_t bos) : subject_(subject), bos_(bos) {
    const auto& a = subject_.automaton;
    for (int64_t s = 0; s < a.states; ++s) {
      bool trap = a.states > 1;
      for (int64_t x = 0; x < a.symbols; ++x) trap &= a.step(s, x) == s;
      trap_.push_back(trap);
    }
  }
  int64_t answers() const { return subject_.recogniser ? 2 : subject_.automaton.states; }
  int64_t vocabulary() const override { return subject_.automaton.symbols + answers() + bos_; }
  double chance() const override { return 0; }
  Score score() const override { return Score::kPrefix; }
  std::string word(int64_t token) const override {
    const auto& a = subject_.automaton;
    if (token < a.symbols) return a.symbol_name(token);
    const int64_t answer = token - a.symbols;
    if (answer >= answers()) return cat("BOS", answer - answers() + 1);
    if (subject_.recogniser) return answer ? "accept" : "reject";
    return a.state_name(answer);
  }
  std::vector<int64_t> before_word() const override {
    std::vector<int64_t> out;
    for (int64_t b = 0; b < bos_; ++b) out.push_back(vocabulary() - bos_ + b);
    return out;
  }
  std::vector<int64_t> letters() const override {
    std::vector<int64_t> out;
    for (int64_t x = 0; x < subject_.automaton.symbols; ++x) out.push_back(x);
    return out;
  }
  std::string empty_answer() const override { return word(answer(subject_.automaton.start)); }
  std::optional<Elements> elements() const override {
    if (!subject_.group) return {};
    Elements out{*subject_.group, std::vector<int64_t>(size_t(vocabulary()), -1)};
    std::unordered_map<std::string, int64_t> id;
    for (int64_t a = 0; a < out.group.order(); ++a) id.emplace(out.group.element(a), a);
    for (int64_t t = 0; t < vocabulary() - bos_; ++t) out.of_token[size_t(t)] = id.at(word(t));
    return out;
  }
  std::optional<Followed> followed() const override {
    Followed out{subject_.title, subject_.automaton, {}};
    for (int64_t s = 0; s < out.automaton.states; ++s) out.answer.push_back(answer(s));
    return out;
  }

  Example sample(uint64_t seed, Split split, uint64_t index, Range length) const override {
    expect_length(length, 1);
    Random random(seed, split == Split::kTrain ? kAutomatonTrain : kAutomatonEval, index);
    const auto& a = subject_.automaton;
    Example out;
    out.input = before_word();
    out.target.assign(out.input.size(), -1);
    out.length = random.between(length.lo, length.hi);
    int64_t state = a.start;
    for (int64_t t = 0; t < out.length; ++t) {
      int64_t x = int64_t(random.below(uint64_t(a.symbols)));
      for (int again = 0; again < 8 && trap_[size_t(a.step(state, x))]; ++again)
        x = int64_t(random.below(uint64_t(a.symbols)));
      state = a.step(state, x);
      out.input.push_back(x);
      out.target.push_back(answer(state));
    }
    return out;
  }

 private:
  int64_t answer(int64_t state) const {
    const auto& a = subject_.automaton;
    return a.symbols + (subject_.recogniser ? int64_t(a.accept[size_t(state)]) : state);
  }

  automata::Subject subject_;
  int64_t bos_;
  std::vector<bool> trap_;
};

MutableTask Config::make() const { return std::make_shared<Words>(subject(), bos); }

}  // namespace

automata::Subject subject_of(const Section& at) { return load<Config>(at, {"name"}).subject(); }

std::string automaton_config(const automata::Source& source, const automata::Subject& subject,
                             int64_t bos) {
  YAML::Emitter out;
  out << YAML::BeginMap << YAML::Key << "name" << YAML::Value << "automaton";
  const auto line = [&](const char* key, const std::string& value) {
    if (!value.empty()) out << YAML::Key << key << YAML::Value << YAML::DoubleQuoted << value;
  };
  if (!source.file.empty()) {
    line("automaton", automata::to_json(subject.automaton));
  } else {
    line("regex", source.regex);
    line("alphabet", source.alphabet);
    line("group", source.group);
    line("letters", source.letters);
    line("example", source.example);
  }
  line("answers", subject.recogniser ? "accept" : "states");
  out << YAML::Key << "bos" << YAML::Value << bos << YAML::EndMap;
  return out.c_str();
}

Entry entry_automaton(const char* name, const char* about) { return entry<Config>(name, about); }

}  // namespace lrnn::tasks
