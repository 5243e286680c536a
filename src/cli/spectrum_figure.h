#pragma once
#include <string>
#include <vector>

#include "experiments/spectrum.h"

namespace lrnn::cli {

struct NamedSpectrum {
  std::string name;  // of the run
  std::vector<experiments::HeadSpectrum> heads;
};

// Strips where all eigenvalues of all runs are real, complex planes otherwise.
std::string spectrum_figure(const std::vector<NamedSpectrum>& runs);
bool is_complex(const std::vector<experiments::HeadSpectrum>& heads);
std::vector<double> sorted_reals(const experiments::HeadSpectrum& head);

}  // namespace lrnn::cli
