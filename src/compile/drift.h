#pragma once

namespace lrnn::compile {

struct Compiled;

// How many tokens the model is surely right for: infinite when every head is exact, otherwise what
// its inexact keys and their norm leave, with rounding noise taken as random.
double safe_length(const Compiled& compiled);

// By how much one reflection shrinks the state in the profile `fla`, whose keys are small: the norm
// has 1e-6 under the root.
double fla_shrinks();

}  // namespace lrnn::compile
