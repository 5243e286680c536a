#include "text/prepare.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <future>
#include <new>
#include <thread>

#include "base/atomic_file.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/random.h"
#include "text/documents.h"
#include "text/prepare_state.h"
#include "text/split_writer.h"

namespace lrnn::text {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBatchBytes = size_t{2} << 20;  // of text for each thread at a time
constexpr auto kBetweenSaves = std::chrono::seconds(2);

// A document on its way: read, encoded, written.
struct Item {
  Document document;
  Ids ids;
  int64_t source_bytes = 0;
  std::exception_ptr error;
};

class Work {
 public:
  Work(const Prepare& how, const Tokenizer& tokenizer)
      : how_(how),
        tokenizer_(tokenizer),
        format_(ShardFormat::of(vocabulary())),
        state_(PrepareState::open(how, tokenizer)),
        documents_(all_files()),
        train_(how.out, "train", format_, state_.train),
        eval_(how.out, "eval", format_, state_.eval) {
    for (int i = 0; i < how.threads; ++i) encoders_.push_back(tokenizer.encoder());
  }

  std::optional<Manifest> run(const std::function<bool(const PrepareProgress&)>& go_on) {
    for (const auto& part : state_.shards) name_shard(how_.out, part);
    check_shards(how_.out, manifest(), false);
    copy_tokenizer();
    skip_what_is_done();
    auto reading = std::async(std::launch::async, [&] { return read(); });
    for (;;) {
      auto items = reading.get();
      if (items.empty()) break;
      if (state_.done && !items[0].error)
        throw Error(cat(items[0].document.where, ": there are more documents than the ",
                        state_.documents, " that ", how_.out, " was prepared from"),
                    "take another folder");
      // After a file that cannot be read there is no next batch: `write` ends with its error.
      if (!items.back().error) reading = std::async(std::launch::async, [&] { return read(); });
      encode(items);
      write(items);
      if (!go_on({state_.documents, state_.tokens, state_.source_bytes})) {
        save();
        return {};
      }
    }
    if (!state_.done) finish();
    return manifest();
  }

 private:
  std::vector<std::string> all_files() const {
    auto out = how_.files;
    out.insert(out.end(), how_.eval.begin(), how_.eval.end());
    return out;
  }
  // A .tiktoken has no special tokens in it: those that are named are beyond its pieces.
  int64_t vocabulary() const {
    int64_t out = tokenizer_.vocabulary();
    for (const auto& id : {how_.bos, how_.eos}) {
      if (!id) continue;
      if (*id < 0 || (*id >= out && !tokenizer_.open_ended))
        throw Error(cat("the id ", *id, " is beyond the vocabulary of ", out));
      out = std::max<int64_t>(out, *id + 1);
    }
    return out;
  }

  // The documents are read again, which takes little time, and their sum must be what it was.
  void skip_what_is_done() {
    Document document;
    for (number_ = 0; number_ < uint64_t(state_.documents); ++number_) {
      if (!documents_.next(document))
        throw Error(cat("there are only ", number_, " documents, and ", how_.out, " has ",
                        state_.documents, " of them already"),
                    "the files have changed; take another folder");
      sum(document);
    }
    if (state_.documents > 0 && sum_.text() != state_.checksum)
      throw Error(cat("the first ", state_.documents, " documents are not those that ", how_.out,
                      " was prepared from"),
                  "the files have changed; take another folder");
  }
  void sum(const Document& document) {
    sum_.add(document.raw);
    sum_.add(std::string_view("\0", 1));  // where it ends counts too
  }

  std::vector<Item> read() {
    std::vector<Item> out;
    size_t bytes = 0;
    try {
      for (Document document;
           bytes < kBatchBytes * encoders_.size() && documents_.next(document);) {
        bytes += document.raw.size() + 64;
        out.push_back({.document = std::move(document), .ids = {}, .error = {}});
      }
    } catch (...) {  // what was read before it is written first
      out.push_back({.document = {}, .ids = {}, .error = std::current_exception()});
    }
    return out;
  }

  void encode(std::vector<Item>& items) {
    std::atomic<size_t> next = 0;
    const auto work = [&](size_t thread) {
      for (size_t i; (i = next++) < items.size();) encode(items[i], *encoders_[thread]);
    };
    std::vector<std::jthread> threads;
    for (size_t i = 1; i < encoders_.size(); ++i) threads.emplace_back(work, i);
    work(0);
  }
  void encode(Item& item, Encoder& encoder) const {
    if (item.error) return;
    try {
      const std::string text = item.document.text(how_.field);
      if (how_.bos) item.ids.push_back(*how_.bos);
      encoder.encode(how_.ids.empty() ? text : item.document.text(how_.ids), item.ids);
      if (!how_.bos && how_.eos) item.ids.push_back(*how_.eos);
      item.source_bytes = int64_t(text.size());
      if (int64_t(item.ids.size()) > format_.most_tokens())
        throw Error(cat(item.document.where, ": the document has more tokens than a shard can"));
    } catch (const Error& e) {
      const bool named = std::string(e.what()).starts_with(item.document.where);
      const Error full(named ? e.what() : cat(item.document.where, ": ", e.what()), e.hint());
      item.error = std::make_exception_ptr(full);
    } catch (const std::bad_alloc&) {
      item.error = std::make_exception_ptr(
          Error(cat(item.document.where, ": the document does not fit into memory"),
                "cut it into several documents; what was prepared before it is kept"));
    }
  }

  // In the order of the documents, up to the first that could not be encoded.
  void write(std::vector<Item>& items) {
    for (auto& item : items) {
      if (item.error) {
        save();
        std::rethrow_exception(item.error);
      }
      SplitWriter& to = held_out(item.document) ? eval_ : train_;
      const auto tokens = int64_t(item.ids.size());
      if (to.open().documents > 0 && to.open().tokens + tokens > how_.shard_tokens) close(to);
      to.add(item.ids, uint32_t(item.source_bytes));
      sum(item.document);
      ++number_;
      ++state_.documents;
      state_.tokens += tokens;
      state_.source_bytes += item.source_bytes;
    }
    if (std::chrono::steady_clock::now() - saved_ > kBetweenSaves) save();
  }
  bool held_out(const Document& document) const {
    if (document.file >= how_.files.size()) return true;
    return Random(how_.seed, 0, number_).uniform() < how_.hold_out;
  }

  void close(SplitWriter& writer) {
    const auto part = writer.finish();
    state_.shards.push_back(part);
    save();  // first: if we are killed now, the next start gives it its name
    name_shard(how_.out, part);
  }
  void save() {
    train_.sync();
    eval_.sync();
    state_.train = train_.open();
    state_.eval = eval_.open();
    state_.checksum = sum_.text();
    state_.save(how_.out);
    saved_ = std::chrono::steady_clock::now();
  }
  void finish() {
    if (state_.documents == 0) throw Error("there are no documents to prepare");
    for (SplitWriter* writer : {&train_, &eval_})
      if (writer->open().documents > 0) close(*writer);
    write_atomically(how_.out + "/manifest.json", manifest().json());
    state_.done = true;
    save();
  }

  Manifest manifest() const {
    Manifest out{.tokenizer = tokenizer_.sha256,
                 .vocabulary = vocabulary(),
                 .bos = how_.bos,
                 .eos = how_.eos,
                 .domain = how_.domain,
                 .tokens = state_.tokens,
                 .documents = state_.documents,
                 .source_bytes = state_.source_bytes,
                 .shards = state_.shards};
    // Which shard was full first depends on the documents; the list does not.
    std::stable_sort(out.shards.begin(), out.shards.end(), [](const auto& a, const auto& b) {
      return a.split != b.split ? a.split > b.split : a.file < b.file;
    });
    return out;
  }
  // Whoever trains on the data finds its tokenizer beside it.
  void copy_tokenizer() const {
    for (const auto& file : tokenizer_.files) {
      // mistral-common's tokenizer.model.v1 is found as tokenizer.model.
      auto name = fs::path(file).filename().string();
      if (const size_t at = name.find(".model"); at != name.npos) name = "tokenizer.model";
      write_atomically(how_.out + "/" + name, read_file(file));
    }
  }

  const Prepare& how_;
  const Tokenizer& tokenizer_;
  ShardFormat format_;
  PrepareState state_;
  Documents documents_;
  SplitWriter train_, eval_;
  std::vector<std::unique_ptr<Encoder>> encoders_;
  Crc32c sum_;
  uint64_t number_ = 0;  // of the next document
  std::chrono::steady_clock::time_point saved_ = std::chrono::steady_clock::now();
};

}  // namespace

std::optional<Manifest> prepare(const Prepare& how, const Tokenizer& tokenizer,
                                const std::function<bool(const PrepareProgress&)>& go_on) {
  const auto most = ShardFormat::of(tokenizer.vocabulary()).most_tokens();
  if (how.shard_tokens < 1 || how.shard_tokens > most)
    throw Error(cat("--shard-tokens must be between 1 and ", most, ", got ", how.shard_tokens),
                "a shard stays below 2^31 bytes, so that llm.c can read it");
  if (!(how.hold_out >= 0 && how.hold_out < 1))
    throw Error(cat("--hold-out must be at least 0 and less than 1, got ", how.hold_out));
  return Work(how, tokenizer).run(go_on);
}

}  // namespace lrnn::text
