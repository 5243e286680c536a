#pragma once
#include <string>
#include <vector>

#include "experiments/run.h"
#include "experiments/spectrum.h"

namespace lrnn::cli {

struct NamedSpectrum {
  std::string name;  // of the run
  std::vector<experiments::HeadSpectrum> heads;
  std::string key;  // of the model: experiments/identity.h
  const tasks::Task* task;
};
NamedSpectrum named(const std::string& name, const experiments::Run& run,
                    const std::vector<experiments::HeadSpectrum>& heads);

// Letters are told apart where there are no more of them.
constexpr size_t kMostLetters = 6;

// Strips where all eigenvalues of all runs are real, complex planes otherwise; with a colour and a
// mark for every letter of a small alphabet.
std::string spectrum_figure(const std::vector<NamedSpectrum>& runs);
bool is_complex(const std::vector<experiments::HeadSpectrum>& heads);
std::vector<double> sorted_reals(const experiments::HeadSpectrum& head);

}  // namespace lrnn::cli
