#include "text/sentence_piece_json.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "text/sentence_piece.h"

namespace lrnn::text {
namespace {

using Json = nlohmann::ordered_json;
using Library = sentencepiece::SentencePieceProcessor;

bool is_text(const Library& library, int id) {
  return !library.IsControl(id) && !library.IsUnknown(id) && !library.IsByte(id) &&
         !library.IsUnused(id);
}

// Which two pieces make a third, in the order in which SentencePiece joins them: by the score of
// what comes out.
Json merges(const Library& library) {
  struct Merge {
    float score;
    int id;
    std::string left, right;
  };
  std::vector<Merge> all;
  const int unknown = library.unk_id();
  const auto known = [&](const std::string& piece) {
    const int id = library.PieceToId(piece);
    return id != unknown && is_text(library, id);
  };
  for (int id = 0; id < library.GetPieceSize(); ++id) {
    if (!is_text(library, id)) continue;
    const std::string& piece = library.IdToPiece(id);
    for (size_t cut = 1; cut < piece.size(); ++cut) {
      if ((static_cast<unsigned char>(piece[cut]) & 0xC0) == 0x80) continue;  // inside a character
      std::string left = piece.substr(0, cut), right = piece.substr(cut);
      if (known(left) && known(right))
        all.push_back({library.GetScore(id), id, std::move(left), std::move(right)});
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Merge& a, const Merge& b) {
    return a.score != b.score ? a.score > b.score : a.id < b.id;
  });
  Json out = Json::array();
  for (const auto& merge : all) out.push_back({merge.left, merge.right});
  return out;
}

Json special(const std::string& content, int id) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}

// Documents begin with BOS, as those that a model of such a tokenizer is trained on.
Json post_processor(const Library& library) {
  if (library.bos_id() < 0) return nullptr;
  const std::string bos = library.IdToPiece(library.bos_id());
  const auto token = [&](int64_t type) {
    return Json{{"SpecialToken", {{"id", bos}, {"type_id", type}}}};
  };
  const auto text = [](const char* name, int64_t type) {
    return Json{{"Sequence", {{"id", name}, {"type_id", type}}}};
  };
  const Json ids = Json::array({library.bos_id()}), tokens = Json::array({bos});
  return {{"type", "TemplateProcessing"},
          {"single", Json::array({token(0), text("A", 0)})},
          {"pair", Json::array({token(0), text("A", 0), token(1), text("B", 1)})},
          {"special_tokens", {{bos, {{"id", bos}, {"ids", ids}, {"tokens", tokens}}}}}};
}

Json replace(const char* what, const char* by) {
  return {{"type", "Replace"}, {"pattern", {{"String", what}}}, {"content", by}};
}

}  // namespace

std::optional<TokenizerFiles> tokenizer_files_of(const std::string& model,
                                                 const std::string& path) {
  const SentencePieceAbout about = about_sentence_piece(model, path);
  const bool changes = about.normalizes || about.drops_spaces || about.suffix || !about.escapes;
  if (!about.bpe || changes) return {};
  Library library;
  if (!library.LoadFromSerializedProto(model).ok())
    throw Error(path + " is no SentencePiece model, or a damaged one");
  Json vocabulary = Json::object(), added = Json::array();
  bool bytes = false;
  for (int id = 0; id < library.GetPieceSize(); ++id) {
    vocabulary[library.IdToPiece(id)] = id;
    bytes = bytes || library.IsByte(id);
    if (library.IsControl(id) || library.IsUnknown(id))
      added.push_back(special(library.IdToPiece(id), id));
  }
  const std::string unknown = library.IdToPiece(library.unk_id());
  const char* const blank = "\u2581";
  Json normalizers = Json::array(), decoders = Json::array();
  if (about.prefix) normalizers.push_back({{"type", "Prepend"}, {"prepend", blank}});
  normalizers.push_back(replace(" ", blank));
  decoders.push_back(replace(blank, " "));
  decoders.push_back({{"type", "ByteFallback"}});
  decoders.push_back({{"type", "Fuse"}});
  if (about.prefix)
    decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  const Json tokenizer{{"version", "1.0"},
                       {"truncation", nullptr},
                       {"padding", nullptr},
                       {"added_tokens", added},
                       {"normalizer", {{"type", "Sequence"}, {"normalizers", normalizers}}},
                       {"pre_tokenizer", nullptr},
                       {"post_processor", post_processor(library)},
                       {"decoder", {{"type", "Sequence"}, {"decoders", decoders}}},
                       {"model",
                        {{"type", "BPE"},
                         {"dropout", nullptr},
                         {"unk_token", unknown},
                         {"continuing_subword_prefix", nullptr},
                         {"end_of_word_suffix", nullptr},
                         {"fuse_unk", true},
                         {"byte_fallback", bytes},
                         {"ignore_merges", false},
                         {"vocab", vocabulary},
                         {"merges", merges(library)}}}};
  Json config{{"tokenizer_class", "PreTrainedTokenizerFast"},
              {"unk_token", unknown},
              {"clean_up_tokenization_spaces", false}};
  if (library.bos_id() >= 0) config["bos_token"] = library.IdToPiece(library.bos_id());
  if (library.eos_id() >= 0) config["eos_token"] = library.IdToPiece(library.eos_id());
  return TokenizerFiles{tokenizer.dump() + "\n", config.dump(1) + "\n"};
}

}  // namespace lrnn::text
