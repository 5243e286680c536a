#include "experiments/result.h"

namespace lrnn::experiments {

using Json = nlohmann::ordered_json;
using training::Evaluation;
using training::Tally;

Json to_json(const Evaluation& e) {
  Json out{{"accuracy", e.accuracy()}, {"scaled", e.scaled()},       {"chance", e.chance},
           {"loss", e.loss},           {"right", e.sequences.right}, {"count", e.sequences.count}};
  if (e.tokens.count) {
    out["token_accuracy"] = e.tokens.accuracy();
    out["tokens"] = {{"right", e.tokens.right}, {"count", e.tokens.count}};
    out["prefix"] = e.prefix;
  }
  auto lengths = Json::array();
  for (const auto& [length, tally] : e.by_length)
    lengths.push_back({{"length", length}, {"right", tally.right}, {"count", tally.count}});
  out["by_length"] = std::move(lengths);
  return out;
}

Evaluation evaluation_from_json(const Json& json) {
  const auto tally = [](const Json& from) {
    return Tally{from.at("right").get<int64_t>(), from.at("count").get<int64_t>()};
  };
  Evaluation out;
  // A loss that is not finite is null in JSON.
  out.loss = json.at("loss").is_number() ? json.at("loss").get<double>() : std::nan("");
  out.sequences = tally(json);
  out.chance = json.at("chance").get<double>();
  if (json.contains("tokens")) {
    out.tokens = tally(json.at("tokens"));
    out.prefix = json.at("prefix").get<std::vector<double>>();
  }
  for (const auto& item : json.at("by_length"))
    out.by_length[item.at("length").get<int64_t>()] = tally(item);
  return out;
}

}  // namespace lrnn::experiments
