#pragma once
#include <string>

namespace lrnn::cli {

// Where the configs are: beside an installed program, in the checkout around a build folder, or
// where the program was built.
std::string configs_folder();

}  // namespace lrnn::cli
