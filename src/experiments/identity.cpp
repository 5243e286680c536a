#include "experiments/identity.h"

#include <array>

namespace lrnn::experiments {
namespace {

std::string name_for_people(const std::string& mixer) {
  static constexpr std::array<std::pair<const char*, const char*>, 13> kNames = {
      {{"attention", "Transformer"},
       {"mlstm", "mLSTM"},
       {"slstm", "sLSTM"},
       {"mamba", "Mamba"},
       {"delta_net", "DeltaNet"},
       {"delta_product", "DeltaProduct"},
       {"gla", "GLA"},
       {"rwkv7", "RWKV-7"},
       {"titans", "Titans"},
       {"ttt", "TTT-Linear"},
       {"full_matrix", "full matrix"},
       {"matrix_product", "matrix product"},
       {"diagonal", "diagonal"}}};
  for (const auto& [mixer_name, name] : kNames)
    if (mixer == mixer_name) return name;
  return mixer;
}

// Of one mixer with its settings, without the range.
Identity of_mixer(const YAML::Node& settings) {
  std::string mixer = settings["name"].as<std::string>();
  Identity out;
  int64_t factors = 0;
  if (settings["householders"]) factors = settings["householders"].as<int64_t>();
  // The two are one: DeltaNet is DeltaProduct with one factor.
  if (mixer == "delta_product" && factors == 1) mixer = "delta_net";
  out.key = mixer, out.name = name_for_people(mixer);
  if (factors > 1) {
    out.key += " " + std::to_string(factors);
    out.name += " n_h=" + std::to_string(factors);
  }
  if (settings["forget_gate"] && settings["forget_gate"].as<bool>())
    out.key += " gated", out.name = "gated " + out.name;
  if (settings["gate_per"] && settings["gate_per"].as<std::string>() == "channel")
    out.key += " per channel", out.name += " per channel";
  return out;
}

}  // namespace

Identity identity(const model::ModelConfig& config) {
  const YAML::Node settings = mixers::resolve(config.mixer);
  Identity out = of_mixer(settings);
  if (config.hybrid.any()) {
    const std::string other = config.hybrid.mixer.text("name");
    out.key += " + " + other;
    // Attention in some blocks makes no Transformer of it.
    out.name += " + " + (other == "attention" ? other : name_for_people(other));
  }
  if (const YAML::Node range = settings["range"];
      range && range.IsSequence() && range.size() == 2) {
    const std::string text =
        " [" + range[0].as<std::string>() + "," + range[1].as<std::string>() + "]";
    out.key += text, out.name += text;
  }
  return out;
}

}  // namespace lrnn::experiments
