#pragma once
#include <string>

namespace lrnn::cli {

// Where the configs are: beside an installed program, in the checkout around a build folder, or
// where the program was built.
std::string configs_folder();
// A config by the name the documents use: a file that is there, or one of those that came with the
// program (configs/tiny.yaml, quick/parity_delta_net_2.yaml), wherever one stands. What is neither is
// returned as it is.
std::string find_config(const std::string& name);

}  // namespace lrnn::cli
