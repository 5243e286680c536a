#include "text/corpus.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/sha256.h"
#include "text/tokenizer.h"

namespace lrnn::text {
namespace {

namespace fs = std::filesystem;

// More than that is prepared once, not at every start.
constexpr int64_t kMostTextBytes = int64_t{64} << 20;

std::vector<std::string> texts_in(const std::string& folder) {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_regular_file() && entry.path().extension() == ".txt")
      out.push_back(entry.path().string());
  std::sort(out.begin(), out.end());
  return out;
}

void require_folder(const std::string& folder) {
  if (!fs::is_directory(folder))
    throw Error(cat("there is no folder ", folder, " with data"),
                "`lrnn prepare` makes one; paths are seen from where lrnn is started");
}

std::string name_of(const std::string& folder) {
  return fs::weakly_canonical(folder).filename().string();
}

// The last tenth begins with a line of its own.
size_t where_to_cut(const std::string& text) {
  const size_t at = text.find('\n', text.size() / 10 * 9);
  return at == std::string::npos ? text.size() : at + 1;
}

struct Encoded {
  Ids ids;
  std::vector<DocumentAt> documents;
};

void add_document(const Corpus& corpus, Encoder& encoder, std::string_view text, Encoded& to) {
  if (text.empty()) return;
  const auto first = int64_t(to.ids.size());
  if (corpus.bos) to.ids.push_back(*corpus.bos);
  encoder.encode(text, to.ids);
  if (!corpus.bos && corpus.eos) to.ids.push_back(*corpus.eos);
  to.documents.push_back({first, int64_t(to.ids.size()) - first, int64_t(text.size())});
}

Corpus open_texts(const std::string& folder) {
  const auto files = texts_in(folder);
  if (files.empty())
    throw Error(cat("the folder ", folder, " has neither a manifest.json nor *.txt"),
                "`lrnn prepare` makes a folder with shards; paths are seen from where lrnn is "
                "started");
  const auto tokenizer = open_tokenizer(folder);
  Corpus out;
  out.folder = folder, out.domain = name_of(folder);
  out.tokenizer = tokenizer->sha256, out.vocabulary = tokenizer->vocabulary();
  out.bos = tokenizer->bos, out.eos = tokenizer->eos;
  const auto encoder = tokenizer->encoder();
  Sha256 sum;
  sum.add(out.tokenizer);
  Encoded train, eval;
  int64_t bytes = 0;
  for (const auto& file : files) {
    const std::string text = read_file(file);
    bytes += int64_t(text.size());
    if (bytes > kMostTextBytes)
      throw Error(cat("the texts in ", folder, " have more than ", kMostTextBytes >> 20, " MB"),
                  cat("make shards of them once: lrnn prepare ", folder, "/*.txt --tokenizer ",
                      folder, " -o data"));
    const size_t cut = where_to_cut(text);
    add_document(out, *encoder, std::string_view(text).substr(0, cut), train);
    add_document(out, *encoder, std::string_view(text).substr(cut), eval);
    sum.add(sha256(text));
  }
  out.sha256 = sum.text();
  out.train = Stream(std::move(train.ids), std::move(train.documents));
  out.eval = Stream(std::move(eval.ids), std::move(eval.documents));
  return out;
}

Stream stream_of(const Corpus& corpus, const char* split) {
  std::vector<std::string> shards;
  for (const auto& part : corpus.manifest->shards)
    if (part.split == split) shards.push_back(corpus.folder + "/" + part.file);
  return {shards, corpus.bos, corpus.eos};
}

// Where it is noted that shards were found whole: under the user's cache, by all that would change
// if they did. Empty where there is no such place.
std::string stamp_of(const Corpus& corpus) {
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  std::string root = cache && *cache ? cache : home && *home ? cat(home, "/.cache") : "";
  if (root.empty()) return "";
  std::string about = cat(fs::weakly_canonical(corpus.folder).string(), "\n", corpus.sha256, "\n");
  for (const auto& part : corpus.manifest->shards)
    for (const auto& file : {part.file, index_file(part.file)}) {
      struct stat s {};
      if (::stat((corpus.folder + "/" + file).c_str(), &s) != 0) continue;
      about += cat(file, " ", s.st_size, " ", s.st_mtim.tv_sec, ".", s.st_mtim.tv_nsec, " ",
                   s.st_ino, "\n");
    }
  return cat(root, "/lrnn/verified/", sha256(about));
}

}  // namespace

Corpus Corpus::open(const std::string& folder) {
  require_folder(folder);
  const std::string file = folder + "/manifest.json";
  if (!fs::exists(file)) return open_texts(folder);
  Corpus out;
  out.folder = folder;
  out.manifest = Manifest::open(folder);
  out.sha256 = sha256_of_file(file);
  const auto& m = *out.manifest;
  out.domain = m.domain, out.tokenizer = m.tokenizer, out.vocabulary = m.vocabulary;
  out.bos = m.bos, out.eos = m.eos;
  out.train = stream_of(out, "train"), out.eval = stream_of(out, "eval");
  return out;
}

void Corpus::verify(bool again) const {
  if (!manifest) return;
  const std::string stamp = stamp_of(*this);
  if (!again && !stamp.empty() && fs::exists(stamp)) return;
  check_shards(folder, *manifest, true);
  if (stamp.empty()) return;
  // Without a place to note it, the next start looks again.
  std::error_code failed;
  fs::create_directories(fs::path(stamp).parent_path(), failed);
  try {
    if (!failed) write_atomically(stamp, folder + "\n");
  } catch (const Error&) {
  }
}

std::optional<int64_t> vocabulary_of(const std::string& folder) {
  if (fs::exists(folder + "/manifest.json")) return Manifest::open(folder).vocabulary;
  if (!fs::is_directory(folder) || texts_in(folder).empty()) return {};
  return open_tokenizer(folder)->vocabulary();
}

}  // namespace lrnn::text
