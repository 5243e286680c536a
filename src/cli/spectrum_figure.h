#pragma once
#include <string>
#include <vector>

#include "experiments/spectrum.h"

namespace lrnn::cli {

// Strips of real eigenvalues for one Householder factor per token, complex planes for more.
std::string spectrum_figure(const std::vector<experiments::HeadSpectrum>& heads,
                            const std::string& title);
std::vector<double> sorted_reals(const experiments::HeadSpectrum& head);

}  // namespace lrnn::cli
