#pragma once
#include <string>

namespace lrnn::experiments {

// An Error unless everything in the folder was written by lrnn for a training run: a file of
// somebody else's, a link that leads out of it or a compiled model is not for us to remove. A
// folder that is empty or missing is fine. `needed`, where one is named, must not lie in it.
void check_removable(const std::string& folder, const std::string& needed = {});

// Removes the run in the folder, after that check, and leaves the folder itself. For who holds the
// run's lock.
void remove_run(const std::string& folder);

}  // namespace lrnn::experiments
