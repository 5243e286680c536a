#include "experiments/metrics.h"

#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "experiments/run.h"

namespace lrnn::experiments {

std::vector<nlohmann::ordered_json> read_json_lines(const std::string& file) {
  std::vector<nlohmann::ordered_json> out;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (auto json = nlohmann::ordered_json::parse(line, nullptr, false); json.is_object())
      out.push_back(std::move(json));
  return out;
}

double number_in(const nlohmann::ordered_json& object, const std::string& key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : std::nan("");
}

namespace fs = std::filesystem;

Curves read_curves(const std::string& folder) {
  if (fs::exists(folder + "/manifest.json"))
    throw Error(cat(folder, " is a checkpoint"), "curves belong to the run: give its folder");
  if (!fs::exists(folder + "/config.yaml"))
    throw Error(cat(folder, " is not a run"), "give the folder that `lrnn train --out` wrote");
  const auto config = read_config(folder + "/config.yaml", {});
  Curves out{.folder = folder,
             .steps = config.train.steps,
             .train = {},
             .eval = {},
             .changes = {},
             .text = config.task.text("name") == "text"};
  for (auto& line : read_json_lines(folder + "/metrics.jsonl")) {
    const auto kind = line.value("kind", "");
    auto& lines = kind == "train" ? out.train : kind == "eval" ? out.eval : out.changes;
    lines.push_back(std::move(line));
  }
  if (out.train.empty() && out.eval.empty())
    throw Error(cat("the run in ", folder, " has no metrics yet"),
                fs::exists(folder + "/compiled.json")
                    ? "it was compiled and not trained: there are no curves"
                    : "let it train on: it writes them every train.log_every steps");
  return out;
}

using Json = nlohmann::ordered_json;
using training::Evaluation;
using training::Tally;

namespace {

Json number_or_null(double x) { return std::isfinite(x) ? Json(x) : Json(); }

Json text_json(const Evaluation& e) {
  const auto all = e.all_domains();
  return {{"loss", number_or_null(e.loss)},
          {"perplexity", number_or_null(all.perplexity())},
          {"bits_per_byte", number_or_null(all.bits_per_byte())},
          {"accuracy", e.accuracy()},
          {"right", e.tokens.right},
          {"count", e.tokens.count},
          {"sequences", e.sequences.count},
          {"domains", domains_json(e.domains)}};
}

Evaluation text_from_json(const Json& json) {
  Evaluation out;
  out.loss = number_in(json, "loss");
  for (const auto& d : json.at("domains")) {
    const auto targets = d.at("targets").get<int64_t>();
    out.domains.push_back({.name = d.at("name").get<std::string>(),
                           .sequences = d.at("sequences").get<int64_t>(),
                           .tokens = {d.at("right").get<int64_t>(), targets},
                           .nats = d.at("nats").get<double>(),
                           .bytes = d.at("bytes").get<double>()});
  }
  const auto all = out.all_domains();
  out.tokens = all.tokens, out.sequences.count = all.sequences;
  return out;
}

}  // namespace

Json scores_json(const Evaluation& e) {
  Json out{{"scaled", e.scaled()}};
  if (!e.tokens.count) return out;
  out["token_accuracy"] = e.tokens.accuracy();
  out["prefix"] = Json::object();
  for (size_t length = 1; length < e.prefix.size(); length *= 2)
    out["prefix"][std::to_string(length)] = e.prefix[length];
  return out;
}

std::string evaluations_csv(const std::vector<Json>& lines) {
  std::string out = "step,split,scaled,accuracy,loss\n";
  const auto row = [&](const Json& step, const char* split, const Json& of) {
    out += cat(step.dump(), ",", split);
    for (const char* key : {"scaled", "accuracy", "loss"})
      out += cat(",", of.contains(key) && of[key].is_number() ? of[key].dump() : "");
    out += "\n";
  };
  for (const auto& line : lines) {
    if (line.value("kind", "") != "eval") continue;
    row(line.at("step"), "test", line);
    if (line.contains("validation")) row(line.at("step"), "validation", line["validation"]);
  }
  return out;
}

Json domains_json(const std::vector<training::Domain>& domains) {
  Json out = Json::array();
  for (const auto& d : domains)
    out.push_back({{"name", d.name},
                   {"targets", d.tokens.count},
                   {"bytes", d.bytes},
                   {"loss", number_or_null(d.loss())},
                   {"perplexity", number_or_null(d.perplexity())},
                   {"bits_per_byte", number_or_null(d.bits_per_byte())},
                   {"accuracy", d.tokens.accuracy()},
                   {"right", d.tokens.right},
                   {"nats", number_or_null(d.nats)},
                   {"sequences", d.sequences}});
  return out;
}

Json to_json(const Evaluation& e) {
  if (e.of_text()) return text_json(e);
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
  if (json.contains("domains")) return text_from_json(json);
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
