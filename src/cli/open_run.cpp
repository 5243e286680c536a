#include "cli/open_run.h"

#include "base/error.h"
#include "cli/messages.h"

namespace lrnn::cli {

experiments::Run open_run(const std::string& folder) {
  auto run = experiments::open(folder);
  warn_of_damage(run);
  return run;
}

void warn_of_damage(const experiments::Run& run) {
  for (const auto& sentence : run.damaged) warn(cat(sentence, "; using step ", run.step));
}

}  // namespace lrnn::cli
