#include "tasks/group_file.h"
#include "tasks/keys.h"

// The running product of elements of a group, as in the state-tracking papers.
namespace lrnn::tasks {
namespace {

// Sequences that may come from a file.
struct GroupKeys {
  Range length;
  double share;  // of the file's sequences
  std::string file = {};

  std::shared_ptr<const Rows> rows(Split split, const GroupWords& words) const {
    return file.empty() ? nullptr : rows_for(split, GroupFile(file, words, length), share);
  }

 protected:
  template <class Visit> void visit_file(Visit&& visit, const char* in_file, const char* in_share) {
    visit("file", file, in_file);
    visit("share", share, in_share, above_and_at_most(0, 1));
  }
};

struct GroupTrain : GroupKeys {
  int64_t set = 0;
  GroupTrain() : GroupKeys{{128, 128}, 0.99} {}
  template <class Visit> void fields(Visit&& visit) {
    visit("length", length, "tokens in a training sequence, without BOS", lengths(1));
    visit("set", set, "so many distinct sequences, shuffled in every epoch; 0: always fresh ones",
          at_least(0));
    visit_file(visit, "a CSV of sequences to train on instead; see `lrnn tasks export`",
               "the part of the file's sequences that is for training");
  }
};

struct GroupEval : GroupKeys {
  int64_t samples = 5000;
  GroupEval() : GroupKeys{{512, 512}, 0.01} {}
  template <class Visit> void fields(Visit&& visit) {
    visit("length", length, "shortest and longest sequence it is tested on", lengths(1));
    visit("samples", samples, "sequences in one evaluation", at_least(1));
    visit_file(visit, "a CSV of sequences to be tested on instead",
               "the part of the file's sequences that is for testing");
  }
};

struct GroupConfig {
  std::string group = "S3";
  GroupTrain train;
  GroupEval eval;
  template <class Visit> void fields(Visit&& visit) {
    visit("group", group, "S5, A5, Z60, D4, A4_x_Z5, S5_only_swaps, S5_limit_to_3, S5_2_tokens …");
    visit_both(visit, train, eval);
  }
  void check(const Section& at) const {
    const auto words = read(at);
    const auto letters = int64_t(words.letters.size());
    at.require(letters >= 2, "group", "must have at least two elements, got ", group);
    const int64_t most = largest_set(letters, words.draws(train.length.lo));
    const auto here = at.child("train");
    here.require(train.set <= most, "set", "must be between 0 and ", most,
                 " (that many sequences differ), got ", train.set);
    here.require(train.file.empty() || train.set == 0, "set", "and file exclude each other");
  }

  MutableTask make() const {
    const GroupWords words(group);
    AskEach q;
    q.symbols = int64_t(words.letters.size());
    for (int64_t a = 0; a < words.group.order(); ++a) q.words.push_back(words.group.element(a));
    if (words.special) q.words.push_back("_");
    for (const char* special : {"PAD", "BOS", "UNK", "EOS", "SEP", "CLS", "MASK"})
      q.words.push_back(special);
    q.bos = words.symbols() + 1;
    q.start = words.group.identity();
    q.group = words.group;
    q.letters = words.letters;
    if (words.special) q.letters.push_back(words.filler());
    if (words.tokens == 1)  // otherwise answers are late, and there are more states than elements
      q.step = [group = words.group](int64_t y, int64_t x) { return group.product(y, x); };
    q.set = train.set;
    q.draws = [words](int64_t length) { return words.draws(length); };
    q.spell = [words](const auto& drawn, int64_t length) { return words.spell(drawn, length); };
    q.answers = [words](const auto& tokens) { return words.answers(tokens); };
    q.train_rows = train.rows(Split::kTrain, words), q.eval_rows = eval.rows(Split::kEval, words);
    if (q.eval_rows && eval.samples > q.eval_rows->count())
      throw Error(cat("an evaluation asks for ", eval.samples, " sequences, but ", eval.file,
                      " gives ", q.eval_rows->count()),
                  cat("set eval.samples=", q.eval_rows->count(), ", or a larger eval.share"));
    return follow(std::move(q));
  }

 private:
  GroupWords read(const Section& at) const {
    try {
      return GroupWords(group);
    } catch (const Error& e) {
      at.fail("group", cat("cannot be used: ", e.what()), e.hint());
    }
  }
};

}  // namespace

Entry entry_group(const char* name, const char* about) { return entry<GroupConfig>(name, about); }

}  // namespace lrnn::tasks
