#include <iostream>

#include "cli/command.h"
#include "cli/keys.h"
#include "cli/output.h"
#include "mixers/mixer.h"

namespace lrnn::cli {

Action mixers(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "one JSON object");
  app.footer(
      "Example:\n"
      "  lrnn show CONFIG.yaml model.mixer.heads=8");
  return [json] {
    Json all = Json::array();
    for (const auto& mixer : lrnn::mixers::all())
      all.push_back({{"name", mixer.name},
                     {"about", mixer.about},
                     {"help", help(mixer.keys())},
                     {"keys", keys_json(mixer.keys())}});
    if (*json) return print_json({{"mixers", all}}), kDone;
    for (const auto& mixer : lrnn::mixers::all())
      std::cout << mixer.name << ": " << mixer.about << "\n" << help(mixer.keys()) << "\n";
    return kDone;
  };
}

}  // namespace lrnn::cli
