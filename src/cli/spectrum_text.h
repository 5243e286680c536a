#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace lrnn::cli {

// Of language models: how much of beta lies above 1, by layer and head, and at which tokens. False,
// with nothing said, where one of the runs is none or its mixers have no beta.
bool show_betas(const std::vector<std::string>& runs, int64_t samples, bool json);

}  // namespace lrnn::cli
