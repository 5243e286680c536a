#include "text/manifest.h"

#include <filesystem>

#include "base/json.h"
#include "base/sha256.h"
#include "base/text.h"
#include "text/shard.h"

namespace lrnn::text {
namespace {

using Json = nlohmann::ordered_json;

const TextFile kAbout{.hint = "`lrnn prepare` makes such a folder", .most_bytes = 64 << 20};

Json id_or_null(const std::optional<int32_t>& id) { return id ? Json(*id) : Json(); }

std::optional<int32_t> read_id(const Json& value) {
  if (value.is_null()) return {};
  return value.get<int32_t>();
}

void check_ids(const std::string& path, const Shard& shard, int64_t vocabulary) {
  for (int64_t i = 0; i < shard.tokens(); ++i)
    if (shard[i] < 0 || shard[i] >= vocabulary)
      throw Error(cat(path, ": token ", i, " has the id ", shard[i], ", beyond the vocabulary of ",
                      vocabulary));
}

}  // namespace

std::string Manifest::json() const {
  Json list = Json::array();
  for (const auto& s : shards)
    list.push_back(
        {{"file", s.file}, {"split", s.split}, {"tokens", s.tokens}, {"sha256", s.sha256}});
  return Json{{"version", 1},           {"tokenizer", tokenizer}, {"vocabulary", vocabulary},
              {"bos", id_or_null(bos)}, {"eos", id_or_null(eos)}, {"domain", domain},
              {"tokens", tokens},       {"documents", documents}, {"source_bytes", source_bytes},
              {"shards", list}}
             .dump(2) +
         "\n";
}

Manifest Manifest::open(const std::string& folder) {
  const std::string path = folder + "/manifest.json";
  const std::string text = read_text_file(path, kAbout);
  Manifest out;
  try {
    const auto json = read_json<Json>(text);
    check(json.at("version") == 1, path, ": the version is ", json.at("version").dump(), ", not 1");
    out.tokenizer = json.at("tokenizer").get<std::string>();
    out.vocabulary = json.at("vocabulary").get<int64_t>();
    out.bos = read_id(json.at("bos"));
    out.eos = read_id(json.at("eos"));
    out.domain = json.at("domain").get<std::string>();
    out.tokens = json.at("tokens").get<int64_t>();
    out.documents = json.at("documents").get<int64_t>();
    out.source_bytes = json.at("source_bytes").get<int64_t>();
    for (const auto& s : json.at("shards"))
      out.shards.push_back({s.at("file").get<std::string>(), s.at("split").get<std::string>(),
                            s.at("tokens").get<int64_t>(), s.at("sha256").get<std::string>()});
  } catch (const BadJson& e) {
    throw Error(cat(path, ": ", e.what()), kAbout.hint);
  } catch (const Json::exception& e) {
    throw Error(cat(path, " is no manifest: a key is missing, or of another kind"), kAbout.hint);
  }
  check_shards(folder, out, false);
  return out;
}

void check_shards(const std::string& folder, const Manifest& manifest, bool whole) {
  int64_t documents = 0, source_bytes = 0;
  bool indexed = whole;
  for (const auto& part : manifest.shards) {
    const std::string path = folder + "/" + part.file;
    const Shard shard(path);
    if (shard.tokens() != part.tokens)
      throw Error(
          cat(path, " has ", shard.tokens(), " tokens, and the manifest says ", part.tokens));
    if (!whole) continue;
    check_ids(path, shard, manifest.vocabulary);
    const auto index = Shard::index(path, shard.tokens());
    indexed = indexed && !index.empty();
    documents += int64_t(index.size());
    for (const auto& entry : index) source_bytes += entry.bytes;
    if (sha256(shard.bytes()) != part.sha256)
      throw Error(cat(path, " is damaged: its sha256 is not the manifest's"),
                  "prepare it again into an empty folder");
  }
  // An index that lost documents fits its shard; only their sum tells. Foreign shards may have
  // none.
  if (indexed && (documents != manifest.documents || source_bytes != manifest.source_bytes))
    throw Error(
        cat("the *.idx files of ", folder, " tell of ", documents, " documents with ", source_bytes,
            " bytes, and the manifest of ", manifest.documents, " with ", manifest.source_bytes),
        "prepare it again into an empty folder");
}

}  // namespace lrnn::text
