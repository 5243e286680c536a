#include "text/prepare.h"

#include <charconv>
#include <filesystem>
#include <iostream>
#include <thread>

#include "base/error.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "experiments/files.h"
#include "text/tokenizer.h"

namespace lrnn::cli {
namespace {

struct PrepareArguments {
  text::Prepare how;
  std::string tokenizer, bos, eos;
  int32_t vocabulary = 0;
  bool verify = false, json = false, quiet = false;
};

void report_data(const std::string& folder, const text::Manifest& manifest, bool json) {
  int64_t eval = 0;
  for (const auto& shard : manifest.shards) eval += shard.split == "eval" ? shard.tokens : 0;
  if (json)
    return print_json({{"folder", folder},
                       {"documents", manifest.documents},
                       {"tokens", manifest.tokens},
                       {"eval_tokens", eval},
                       {"source_bytes", manifest.source_bytes},
                       {"shards", manifest.shards.size()}});
  std::cout << folder << ": " << thousands(manifest.tokens) << " tokens of "
            << thousands(manifest.documents) << " documents ("
            << bytes(double(manifest.source_bytes)) << ") in " << manifest.shards.size()
            << " shards, " << thousands(eval) << " of them held out\n";
}

// An id, `none`, or what the tokenizer's own files say.
std::optional<int32_t> token_option(const std::string& text, const std::optional<int32_t>& own,
                                    const char* name) {
  if (text.empty()) return own;
  if (text == "none") return {};
  int32_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size() || id < 0)
    throw Error(cat(name, " takes an id or 'none', got '", text, "'"));
  return id;
}

int prepare_data(PrepareArguments a, bool hold_out_given) {
  auto& how = a.how;
  if (a.verify) {
    const auto manifest = text::Manifest::open(how.out);
    text::check_shards(how.out, manifest, true);
    return report_data(how.out, manifest, a.json), kDone;
  }
  if (how.files.empty() && how.eval.empty())
    throw Error("no files were named", "FILES are texts or *.jsonl; - reads JSONL from a pipe");
  if (a.tokenizer.empty()) throw Error("--tokenizer is needed");
  if (!hold_out_given && !how.eval.empty()) how.hold_out = 0;
  if (how.ids.empty() != (a.vocabulary == 0))
    throw Error("--ids and --vocabulary go together", "ids made elsewhere are below --vocabulary");
  const auto tokenizer = how.ids.empty() ? text::open_tokenizer(a.tokenizer)
                                         : text::given_ids(a.tokenizer, a.vocabulary);
  how.bos = token_option(a.bos, tokenizer->bos, "--bos");
  how.eos = token_option(a.eos, tokenizer->eos, "--eos");
  std::filesystem::create_directories(how.out);
  const auto lock = experiments::FileLock::take(how.out + "/lock");
  if (!lock) throw Error(cat("somebody else is preparing ", how.out, " right now"));
  watch_interrupts();
  ProgressBar bar(a.quiet);
  const auto manifest = text::prepare(how, *tokenizer, [&](const text::PrepareProgress& done) {
    bar.show(cat(thousands(done.documents), " documents, ", thousands(done.tokens), " tokens"));
    return !interrupted();
  });
  bar.clear();
  if (!manifest) return say("stopped; the same command goes on"), kInterrupted;
  report_data(how.out, *manifest, a.json);
  return kDone;
}

}  // namespace

Action prepare(CLI::App& app) {
  auto a = std::make_shared<PrepareArguments>();
  auto& how = a->how;
  how.threads = int(std::max(1u, std::thread::hardware_concurrency()));
  app.add_option("FILES", how.files,
                 "*.jsonl (also .gz, .zst), - for JSONL from a pipe; any other is one document");
  app.add_option("--tokenizer", a->tokenizer,
                 "tokenizer.model, tokenizer.json, *.tiktoken, or a folder with one of them")
      ->type_name("T");
  app.add_option("-o,--out", how.out, "folder of the shards")->required()->type_name("DIR");
  app.add_option("--field", how.field, "the text's key in a line of JSONL (default: text)")
      ->type_name("NAME");
  app.add_option("--ids", how.ids,
                 "key of ids that another program made with the tokenizer, as text: \"5 0 17\"")
      ->type_name("NAME");
  app.add_option("--vocabulary", a->vocabulary, "these ids are below it")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  app.add_option("--domain", how.domain, "what evaluation calls these texts (default: text)")
      ->type_name("NAME");
  auto* hold_out = app.add_option("--hold-out", how.hold_out,
                                  "share of the documents for evaluation (default: 0.0005)");
  hold_out->type_name("SHARE");
  app.add_option("--eval", how.eval,
                 "files of which every document is for evaluation, and then no "
                 "others unless --hold-out says so")
      ->type_name("FILES");
  app.add_option("--seed", how.seed, "of the choice of these documents (default: 2357)")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  app.add_option("--bos", a->bos, "id before every document, or none (default: the tokenizer's)")
      ->type_name("ID");
  app.add_option("--eos", a->eos,
                 "id after every document where there is no BOS, or none "
                 "(default: the tokenizer's)")
      ->type_name("ID");
  app.add_option("--shard-tokens", how.shard_tokens, "tokens in a shard (default: 100000000)")
      ->type_name("N");
  app.add_option("--threads", how.threads, "the bytes are the same for any (default: all)")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  app.add_flag("--verify", a->verify,
               "check what is in DIR instead: sha256, every id, every index");
  app.add_flag("--json", a->json, "one JSON object");
  app.add_flag("--quiet", a->quiet, "no progress");
  app.footer(
      "The shards are llm.c's. Interrupted, the same command goes on where it stopped.\n\n"
      "Example:\n  lrnn prepare tests/data/plays/*.txt --tokenizer tok -o data/plays");
  return [a, hold_out] { return prepare_data(*a, hold_out->count() > 0); };
}

}  // namespace lrnn::cli
