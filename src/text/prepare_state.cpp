#include "text/prepare_state.h"

#include <filesystem>

#include "base/atomic_file.h"
#include "base/json.h"

namespace lrnn::text {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr const char* kName = "/prepare.json";

Json id_or_null(const std::optional<int32_t>& id) { return id ? Json(*id) : Json(); }

// Names and values are said to people where they differ.
Json settings_of(const Prepare& how, const Tokenizer& tokenizer) {
  return {{"tokenizer", tokenizer.sha256},
          {"--bos", id_or_null(how.bos)},
          {"--eos", id_or_null(how.eos)},
          {"--domain", how.domain},
          {"--field", how.field},
          {"--ids", how.ids},
          {"--hold-out", how.hold_out},
          {"--seed", how.seed},
          {"--shard-tokens", how.shard_tokens},
          {"number of files", how.files.size()},
          {"number of --eval files", how.eval.size()}};
}

Json open_json(const SplitWriter::Open& o) {
  return {{"number", o.number}, {"tokens", o.tokens}, {"documents", o.documents}};
}
SplitWriter::Open read_open(const Json& json) {
  return {json.at("number").get<int64_t>(), json.at("tokens").get<int64_t>(),
          json.at("documents").get<int64_t>()};
}

void compare(const Json& before, const Json& now, const std::string& folder) {
  for (const auto& [key, value] : now.items()) {
    if (before.contains(key) && before.at(key) == value) continue;
    if (key == "tokenizer")
      throw Error(cat(folder, " was prepared with another tokenizer, whose sha256 is ",
                      before.value(key, Json()).dump()),
                  "take that one, or another folder");
    throw Error(cat(folder, " was prepared with another ", key, ": ",
                    before.value(key, Json()).dump(), ", not ", value.dump()),
                "the same command goes on; for another one take another folder");
  }
}

}  // namespace

PrepareState PrepareState::open(const Prepare& how, const Tokenizer& tokenizer) {
  PrepareState out;
  const Json settings = settings_of(how, tokenizer);
  out.settings = settings.dump();
  const std::string path = how.out + kName;
  if (!fs::exists(path)) {
    if (fs::exists(how.out + "/manifest.json"))
      throw Error(cat(how.out, " has a manifest already, of data made elsewhere"),
                  "take another folder");
    return out;
  }
  try {
    const auto json = read_json<Json>(read_file(path));
    compare(json.at("settings"), settings, how.out);
    out.documents = json.at("documents").get<int64_t>();
    out.tokens = json.at("tokens").get<int64_t>();
    out.source_bytes = json.at("source_bytes").get<int64_t>();
    out.checksum = json.at("checksum").get<std::string>();
    out.train = read_open(json.at("train"));
    out.eval = read_open(json.at("eval"));
    out.done = json.at("done").get<bool>();
    for (const auto& s : json.at("shards"))
      out.shards.push_back({s.at("file").get<std::string>(), s.at("split").get<std::string>(),
                            s.at("tokens").get<int64_t>(), s.at("sha256").get<std::string>()});
  } catch (const BadJson& e) {
    throw Error(cat(path, ": ", e.what()), "prepare it again into an empty folder");
  } catch (const Json::exception&) {
    throw Error(cat(path, " is damaged"), "prepare it again into an empty folder");
  }
  return out;
}

void PrepareState::save(const std::string& folder) const {
  Json list = Json::array();
  for (const auto& s : shards)
    list.push_back(
        {{"file", s.file}, {"split", s.split}, {"tokens", s.tokens}, {"sha256", s.sha256}});
  const Json json = {
      {"settings", Json::parse(settings)}, {"documents", documents}, {"tokens", tokens},
      {"source_bytes", source_bytes},      {"checksum", checksum},   {"train", open_json(train)},
      {"eval", open_json(eval)},           {"shards", list},         {"done", done}};
  write_atomically(folder + kName, json.dump(2) + "\n");
}

}  // namespace lrnn::text
