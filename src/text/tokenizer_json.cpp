#include "text/byte_level.h"

#include <algorithm>
#include <array>

#include "base/json.h"

namespace lrnn::text {
namespace {

using Json = nlohmann::json;

constexpr int32_t kMostIds = 1 << 22;  // larger numbers are mistakes

// Reads the parts of one file; what is wrong is said with the file's and the part's name.
class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {}

  ByteLevel read(const Json& file) {
    if (!file.is_object() || !file.contains("model")) fail("it has no 'model'");
    normalizer(part(file, "normalizer"));
    pre_tokenizer(part(file, "pre_tokenizer"), "pre_tokenizer");
    if (!bytes_) refuse("pre_tokenizer", "without ByteLevel");
    post_processor(part(file, "post_processor"), "post_processor");
    decoder(part(file, "decoder"));
    vocabulary(file.at("model"));
    merges(file.at("model"));
    added_tokens(part(file, "added_tokens"));
    return std::move(model_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(cat(path_, ": ", what), "such files are written by PyPI `tokenizers`");
  }
  // For what is no mistake, but not ours.
  [[noreturn]] void refuse(const std::string& node, const std::string& what) const {
    throw Error(cat(path_, ": ", node, " ", what, " is not read here, only byte-level BPE is"),
                "`python -m lrnn prepare` uses PyPI `tokenizers` and takes every kind");
  }
  static const Json& part(const Json& of, const char* key) {
    static const Json none;
    const auto found = of.find(key);
    return found == of.end() ? none : *found;
  }
  std::string type(const Json& node, const std::string& name) const {
    if (!node.is_object() || !part(node, "type").is_string()) fail(name + " has no type");
    return node.at("type").get<std::string>();
  }
  bool flag(const Json& node, const char* key, bool otherwise) const {
    const Json& value = part(node, key);
    if (value.is_null()) return otherwise;
    if (!value.is_boolean()) fail(cat("'", key, "' is not true or false"));
    return value.get<bool>();
  }
  const Json& list(const Json& node, const char* key) const {
    const Json& value = part(node, key);
    if (!value.is_array()) fail(cat("'", key, "' is not a list"));
    return value;
  }

  void normalizer(const Json& node) const {
    if (node.is_null()) return;
    const auto name = type(node, "normalizer");
    if (name == "Sequence" && list(node, "normalizers").empty()) return;
    refuse("normalizer", name);
  }

  void pre_tokenizer(const Json& node, const std::string& name) {
    if (node.is_null()) return;
    const auto kind = type(node, name);
    if (bytes_) refuse(name, kind + " after ByteLevel");
    if (kind == "Sequence") {
      for (const auto& one : list(node, "pretokenizers")) pre_tokenizer(one, name);
    } else if (kind == "ByteLevel") {
      bytes_ = true;
      if (flag(node, "add_prefix_space", true)) model_.splits.push_back(Split::kPrefixSpace);
      if (flag(node, "use_regex", true)) model_.splits.push_back(Split::kGpt2);
    } else if (kind == "Digits") {
      const bool each = flag(node, "individual_digits", false);
      model_.splits.push_back(each ? Split::kEachDigit : Split::kDigits);
    } else if (kind == "Split") {
      model_.splits.push_back(split(node, name));
    } else {
      refuse(name, kind);
    }
  }
  Split split(const Json& node, const std::string& name) const {
    const Json& pattern = part(part(node, "pattern"), "Regex");
    if (!pattern.is_string()) refuse(name, "Split by a plain string");
    const auto* known = split_of_pattern(pattern.get_ref<const std::string&>());
    if (!known) refuse(name, cat("Split by ", pattern.dump()));
    // Our patterns match every character, so nothing lies between two matches.
    const auto behavior = part(node, "behavior").is_string() ? part(node, "behavior") : Json("");
    const bool kept = behavior == "Isolated" && !flag(node, "invert", false);
    const bool matches = behavior == "Removed" && flag(node, "invert", false);
    if (!kept && !matches) refuse(name, cat("Split with the behavior ", behavior.dump()));
    return *known;
  }

  // What it adds are special tokens; we add those that are asked for.
  void post_processor(const Json& node, const std::string& name) const {
    if (node.is_null()) return;
    const auto kind = type(node, name);
    if (kind == "Sequence") {
      for (const auto& one : list(node, "processors")) post_processor(one, name);
      return;
    }
    if (kind != "ByteLevel" && kind != "TemplateProcessing") refuse(name, kind);
  }
  void decoder(const Json& node) const {
    if (node.is_null()) return;
    if (const auto kind = type(node, "decoder"); kind != "ByteLevel") refuse("decoder", kind);
  }

  int32_t id(const Json& value, const std::string& of) const {
    if (!value.is_number_unsigned() || value.get<uint64_t>() >= uint64_t(kMostIds))
      fail(cat("the id of '", of, "' is ", value.dump()));
    return value.get<int32_t>();
  }
  void place(int32_t at, std::string bytes) {
    if (size_t(at) >= model_.pieces.size()) model_.pieces.resize(size_t(at) + 1);
    model_.pieces[size_t(at)] = std::move(bytes);
  }

  void vocabulary(const Json& node) {
    if (!part(node, "type").is_null() && type(node, "model") != "BPE")
      refuse("model", type(node, "model"));
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (!part(node, key).is_null() && part(node, key) != "") refuse("model", cat("with ", key));
    if (!part(node, "dropout").is_null() && part(node, "dropout") != 0.0)
      refuse("model", "with dropout");
    if (flag(node, "byte_fallback", false)) refuse("model", "with byte_fallback");
    if (!part(node, "vocab").is_object()) fail("model has no vocab");
    for (const auto& [piece, number] : node.at("vocab").items()) {
      const int32_t at = id(number, piece);
      if (!ids_.emplace(piece, at).second || taken(at)) fail(cat("the id ", at, " comes twice"));
      place(at, bytes_of_piece(piece));
    }
    for (size_t b = 0; b < 256; ++b) model_.letters[b] = find(byte_letters()[b]);
    if (flag(node, "ignore_merges", false))
      for (const auto& [piece, at] : ids_)
        if (const auto& bytes = model_.pieces[size_t(at)]; bytes != piece || is_ascii(piece))
          model_.whole.emplace(bytes, at);
    if (!part(node, "unk_token").is_null()) {
      if (!part(node, "unk_token").is_string()) fail("unk_token is no text");
      model_.unknown = find(node.at("unk_token").get<std::string>());
      model_.fuse_unknown = flag(node, "fuse_unk", false);
    }
  }
  bool taken(int32_t at) const {
    return size_t(at) < model_.pieces.size() && !model_.pieces[size_t(at)].empty();
  }
  // Every letter of a piece in ASCII stands for itself.
  static bool is_ascii(const std::string& piece) {
    return std::all_of(piece.begin(), piece.end(), [](char c) { return c > ' ' && c < 0x7F; });
  }
  int32_t find(const std::string& piece) const {
    const auto found = ids_.find(piece);
    return found == ids_.end() ? -1 : found->second;
  }

  // Pairs, or, in older files, "left right".
  std::array<std::string, 2> pair(const Json& merge, size_t number) const {
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string())
      return {merge[0].get<std::string>(), merge[1].get<std::string>()};
    if (merge.is_string()) {
      const auto text = merge.get<std::string>();
      if (const size_t at = text.find(' '); at != text.npos && text.find(' ', at + 1) == text.npos)
        return {text.substr(0, at), text.substr(at + 1)};
    }
    fail(cat("merge ", number, " is no pair of pieces"));
  }
  void merges(const Json& node) {
    int32_t rank = 0;
    for (const auto& merge : list(node, "merges")) {
      const auto [left, right] = pair(merge, size_t(rank) + 1);
      const int32_t a = find(left), b = find(right), both = find(left + right);
      if (a < 0 || b < 0 || both < 0)
        fail(cat("merge ", rank + 1, " names a piece that is not in the vocab"));
      model_.merges[ByteLevel::pair(a, b)] = {rank++, both};
    }
  }

  // A token outside the vocab gets the next free id, whatever the file says: the library reads it
  // so.
  void added_tokens(const Json& node) {
    if (node.is_null()) return;
    if (!node.is_array()) fail("added_tokens is not a list");
    int32_t next = int32_t(ids_.size());
    for (const auto& one : node) {
      if (!one.is_object() || !part(one, "content").is_string())
        fail("an added token has no content");
      AddedToken token{.content = one.at("content").get<std::string>(),
                       .special = flag(one, "special", false),
                       .single_word = flag(one, "single_word", false),
                       .lstrip = flag(one, "lstrip", false),
                       .rstrip = flag(one, "rstrip", false)};
      if (token.content.empty()) continue;
      const int32_t known = find(token.content);
      token.id = known >= 0 ? known : next;
      if (id(part(one, "id"), token.content) != token.id)
        fail(cat("the added token '", token.content, "' has the id ", part(one, "id").dump(),
                 ", but PyPI `tokenizers` would give it ", token.id));
      if (known < 0) ids_.emplace(token.content, next++);
      place(token.id, token.content);
      (flag(one, "normalized", !token.special) ? model_.normalized : model_.raw).add(token);
    }
  }

  std::string path_;
  ByteLevel model_;
  std::unordered_map<std::string, int32_t> ids_;
  bool bytes_ = false;  // whether ByteLevel was among the pre-tokenizers
};

Json parse(const std::string& text, const std::string& path) {
  try {
    return read_json<Json>(text, 12);
  } catch (const BadJson& e) {
    throw Error(cat(path, ": ", e.what()));
  }
}

}  // namespace

std::unique_ptr<Tokenizer> read_tokenizer_json(const std::string& text, const std::string& path) {
  return byte_level_tokenizer(Reader(path).read(parse(text, path)));
}

void read_tokenizer_config(const std::string& text, const std::string& path, Tokenizer& tokenizer) {
  const Json file = parse(text, path);
  const auto token = [&](const char* key) -> std::optional<int32_t> {
    const auto found = file.find(key);
    if (!file.is_object() || found == file.end() || found->is_null()) return {};
    const Json content = found->is_object() ? found->value("content", Json()) : *found;
    if (!content.is_string()) throw Error(cat(path, ": ", key, " is no text"));
    const auto id = tokenizer.find(content.get_ref<const std::string&>());
    if (!id) throw Error(cat(path, ": the tokenizer has no token ", content.dump(), " for ", key));
    return id;
  };
  tokenizer.bos = token("bos_token");
  tokenizer.eos = token("eos_token");
}

}  // namespace lrnn::text
