#pragma once
#include <string>
#include <vector>

#include "experiments/by_length.h"
#include "experiments/metrics.h"
#include "experiments/run.h"
#include "experiments/spectrum.h"
#include "figures/style.h"
#include "tasks/task.h"

// The figures of the commands.
namespace lrnn::cli {

struct LengthCurve {
  std::string name;
  const std::vector<experiments::LengthBin>* bins;
  double chance;  // drawn as 0
  figures::Style style;
  const tasks::Task* task;
};

// Accuracy by length, or with `positions` of all prefixes up to a position, with the longest of
// training marked. The curves are of tasks with one score.
std::string length_chart(const std::string& title, bool positions,
                         const std::vector<LengthCurve>& curves);

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

// Loss and accuracy by step. One run: training and evaluation in one panel; several: a curve for
// each in panels of their own.
std::string curves_figure(const std::vector<experiments::Curves>& runs);

// The folders' own names, or the whole paths where those are not enough to tell them apart.
std::vector<std::string> short_names(const std::vector<experiments::Curves>& runs);

}  // namespace lrnn::cli
