#include <algorithm>
#include <mutex>

#include "base/sha256.h"
#include "tasks/keys.h"
#include "tasks/text_data.h"
#include "tasks/text_order.h"
#include "text/corpus.h"
#include "text/tokenizer.h"

// The next token of a text. A window is T consecutive tokens of a corpus; which window an example
// is, is a pure function of (data, seed, split, index) like everything else here.
namespace lrnn::tasks {
namespace {

struct TextConfig {
  TextData data;
  int64_t vocabulary = 0;
  std::string documents = "join", targets = "inside", boundary = "keep";
  TrainKeys<1024, 1024, 2> train;
  EvalKeys<1024, 1024, 512, 2> eval;
  template <class Visit> void fields(Visit&& visit) {
    visit("data", data, "folders of `lrnn prepare`, or of texts with a tokenizer");
    visit("vocabulary", vocabulary, "tokens that the data must have; 0: as many as they have",
          at_least(0));
    visit("documents", documents,
          "the state goes on from one document of a window to the next, or begins anew",
          {"join", "reset"});
    visit("targets", targets,
          "of a window of T tokens: the T-1 inside it, or T with the first of the next window",
          {"inside", "next"});
    visit("boundary", boundary, "mask: the first token after a document's end is no target",
          {"keep", "mask"});
    visit("train", train, "what it is trained on; a length counts tokens");
    visit("eval", eval, "what it is tested on: the held-out texts");
  }
  void check(const Section& at) const {
    require_one_length(at.child("train"), train.length);
    require_one_length(at.child("eval"), eval.length);
  }
  static void require_one_length(const Section& at, Range length) {
    at.require(length.lo == length.hi, "length", "must be one number for texts, got [", length.lo,
               ", ", length.hi, "]");
  }
  std::shared_ptr<Task> make() const;
};

// The corpora of a config, opened when they are needed: what can be said without them works where
// they are not.
class Corpora {
 public:
  explicit Corpora(const TextConfig& config) : config_(config) {}

  const std::vector<text::Corpus>& all() const {
    std::call_once(opened_, [&] { open(); });
    return all_;
  }
  // Those that hold something out: the domains.
  const std::vector<size_t>& held_out() const { return all(), held_out_; }

  const text::Tokenizer& tokenizer() const {
    std::call_once(read_, [&] {
      const auto& first = all()[0];
      tokenizer_ = text::open_tokenizer(first.folder);
      if (tokenizer_->sha256 != first.tokenizer)
        throw Error(cat("the tokenizer in ", first.folder, " is not the one of its manifest.json"),
                    "put the file back that the data were prepared with");
    });
    return *tokenizer_;
  }

 private:
  void open() const {
    if (config_.data.sources.empty())
      throw Error("the task text has no data",
                  "name a folder that `lrnn prepare` made: task.data=FOLDER");
    std::vector<text::Corpus> out;
    for (const auto& source : config_.data.sources) out.push_back(text::Corpus::open(source.path));
    for (const auto& corpus : out) {
      if (corpus.tokenizer != out[0].tokenizer || corpus.vocabulary != out[0].vocabulary)
        throw Error(cat(corpus.folder, " and ", out[0].folder, " have different tokenizers"),
                    "prepare both with the same one");
      if (config_.vocabulary && corpus.vocabulary != config_.vocabulary)
        throw Error(cat(corpus.folder, " has a vocabulary of ", corpus.vocabulary,
                        ", and task.vocabulary says ", config_.vocabulary),
                    "prepare it with the tokenizer that the config is about");
    }
    for (size_t i = 0; i < out.size(); ++i)
      if (out[i].eval.tokens() > 0) held_out_.push_back(i);
    all_ = std::move(out);
  }

  TextConfig config_;
  mutable std::once_flag opened_, read_;
  mutable std::vector<text::Corpus> all_;
  mutable std::vector<size_t> held_out_;
  mutable std::unique_ptr<text::Tokenizer> tokenizer_;
};

class Text final : public Task {
 public:
  explicit Text(const TextConfig& config)
      : config_(config), corpora_(config), mixture_(weights(config)) {}

  int64_t vocabulary() const override {
    return config_.vocabulary ? config_.vocabulary : corpora_.all()[0].vocabulary;
  }
  double chance() const override { return 0; }
  Score score() const override { return Score::kText; }

  Example sample(uint64_t seed, Split split, uint64_t index, Range length) const override {
    expect_length(length, 2);
    check(length.lo == length.hi, "windows of a text have one length, not ", length.lo, " to ",
          length.hi);
    const auto& all = corpora_.all();
    if (split == Split::kEval) {
      const Turns turns = held_out(length.hi);
      const Place place = turns.at(index % turns.total());
      Example out =
          window(all[corpora_.held_out()[place.source]].eval, place.number, length.hi, split);
      out.domain = int64_t(place.source);
      return out;
    }
    const Place place = mixture_.at(seed, index);
    const auto& corpus = all[place.source];
    return window(corpus.train,
                  window_of(seed, place, windows(corpus, corpus.train, length.hi, "train")),
                  length.hi, split);
  }

  int64_t most_samples(Range length) const override { return int64_t(held_out(length.hi).total()); }

  std::string word(int64_t token) const override {
    const int32_t id[] = {int32_t(token)};
    return corpora_.tokenizer().decode(id);
  }
  std::string text(const Example& example) const override {
    return corpora_.tokenizer().decode(
        std::vector<int32_t>(example.input.begin(), example.input.end()));
  }

  std::optional<Material> material() const override {
    Material out;
    Sha256 sum;
    for (const auto& corpus : corpora_.all()) {
      sum.add(corpus.sha256);
      out.folders.push_back(corpus.folder);
    }
    const auto& first = corpora_.all()[0];
    out.sha256 = corpora_.all().size() == 1 ? first.sha256 : sum.text();
    out.tokenizer = corpora_.tokenizer().files;
    if (first.bos) out.bos = *first.bos;
    if (first.eos) out.eos = *first.eos;
    return out;
  }

  std::vector<std::string> domains() const override {
    std::vector<std::string> out;
    for (const size_t i : corpora_.held_out()) {
      const auto& corpus = corpora_.all()[i];
      // Folders that call themselves alike are told apart by their paths.
      int64_t alike = 0;
      for (const size_t j : corpora_.held_out()) alike += corpora_.all()[j].domain == corpus.domain;
      out.push_back(alike == 1 ? corpus.domain : corpus.folder);
    }
    return out;
  }

  void verify(bool again) const override {
    for (const auto& corpus : corpora_.all()) corpus.verify(again);
  }

 private:
  static std::vector<double> weights(const TextConfig& config) {
    std::vector<double> out;
    for (const auto& source : config.data.sources) out.push_back(source.weight);
    if (out.empty()) out.push_back(1);  // opening the data will say what is missing
    return out;
  }

  // The tail that does not fill a window is left out.
  uint64_t windows(const text::Corpus& corpus, const text::Stream& stream, int64_t length,
                   const char* split) const {
    const int64_t n = (stream.tokens() - (config_.targets == "next")) / length;
    if (n < 1)
      throw Error(
          cat("the ", split, " split of ", corpus.folder, " has ", stream.tokens(),
              " tokens, and a window needs ", length + (config_.targets == "next")),
          split == std::string("eval")
              ? "take shorter windows (task.eval.length, --lengths of eval), or prepare more "
                "text with --hold-out or --eval"
              : "lower task.train.length, or prepare more text");
    return uint64_t(n);
  }

  Turns held_out(int64_t length) const {
    std::vector<uint64_t> out;
    for (const size_t i : corpora_.held_out())
      out.push_back(windows(corpora_.all()[i], corpora_.all()[i].eval, length, "eval"));
    if (out.empty())
      throw Error(cat("nothing of ", corpora_.all()[0].folder, " is held out for evaluation"),
                  "prepare it again with --hold-out or --eval");
    return Turns(out);
  }

  Example window(const text::Stream& stream, uint64_t number, int64_t length, Split split) const {
    const bool next = config_.targets == "next";
    const int64_t first = int64_t(number) * length;
    Example out;
    out.length = length;
    out.input.resize(size_t(length + next));
    stream.copy(first, length + next, out.input.data());
    out.target.assign(out.input.begin() + 1, out.input.end());
    next ? out.input.pop_back() : out.target.push_back(-1);
    const bool reset = config_.documents == "reset", mask = config_.boundary == "mask";
    if (reset || mask || split == Split::kEval) mark(stream, first, reset, mask, out);
    return out;
  }

  // What the documents of a window mean for it.
  void mark(const text::Stream& stream, int64_t first, bool reset, bool mask, Example& out) const {
    const auto& documents = stream.documents();
    const auto length = int64_t(out.input.size());
    const int64_t end = first + length + (out.target.back() >= 0);  // behind the last target
    const bool sign = has_sign();
    for (size_t d = stream.document_of(first); d < documents.size(); ++d) {
      const auto& at = documents[d];
      if (at.first >= end) break;
      if (at.first > first) {
        if (reset && at.first < first + length) out.starts.push_back(at.first - first);
        if (mask) out.target[size_t(at.first - first - 1)] = -1;
      }
      if (at.bytes <= 0) continue;
      // Of a document that is cut, the bytes in proportion to its tokens; BOS and EOS have none.
      const bool before = sign && corpora_.all()[0].bos.has_value();
      const int64_t text_begin = at.first + before,
                    text_end = at.first + at.tokens - (sign && !before);
      const int64_t covered = std::min(end, text_end) - std::max(first + 1, text_begin);
      if (covered > 0)
        out.bytes += double(at.bytes) * double(covered) / double(text_end - text_begin);
    }
  }
  bool has_sign() const {
    const auto& corpus = corpora_.all()[0];
    return corpus.bos || corpus.eos;
  }

  TextConfig config_;
  Corpora corpora_;
  Mixture mixture_;
};

std::shared_ptr<Task> TextConfig::make() const { return std::make_shared<Text>(*this); }

// Where the data are there, so is the number of their tokens: a run writes it down and can be
// opened without them.
YAML::Node resolve_text(const Section& at) {
  auto out = entry<TextConfig>("", "").resolve(at);
  const auto config = load<TextConfig>(at, {"name"});
  if (config.vocabulary == 0 && !config.data.sources.empty())
    if (const auto found = text::vocabulary_of(config.data.sources[0].path))
      out["vocabulary"] = *found;
  return out;
}

}  // namespace

Entry entry_text(const char* name, const char* about) {
  Entry out = entry<TextConfig>(name, about);
  out.resolve = resolve_text;
  return out;
}

}  // namespace lrnn::tasks
