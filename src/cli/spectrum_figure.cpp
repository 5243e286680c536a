#include "cli/spectrum_figure.h"

#include <fmt/format.h>

#include <algorithm>

#include "figures/spectrum.h"

namespace lrnn::cli {
namespace {

constexpr size_t kBins = 80, kDots = 600;

std::string name(const experiments::HeadSpectrum& head) {
  return fmt::format("layer {}, head {}", head.layer, head.head);
}

}  // namespace

std::vector<double> sorted_reals(const experiments::HeadSpectrum& head) {
  std::vector<double> out;
  for (const auto z : head.values) out.push_back(z.real());
  std::sort(out.begin(), out.end());
  return out;
}

std::string spectrum_figure(const std::vector<experiments::HeadSpectrum>& heads,
                            const std::string& title) {
  const bool several =
      std::any_of(heads.begin(), heads.end(), [](auto& h) { return h.householders > 1; });
  if (!several) {
    figures::Strips strips{"Eigenvalues in use: " + title, "eigenvalue along the key, 1 − β", {}};
    for (const auto& head : heads)
      strips.rows.push_back({name(head), figures::shares(sorted_reals(head), kBins)});
    return draw(strips);
  }
  figures::Planes planes{"Eigenvalues in use: " + title, {}};
  for (const auto& head : heads) {
    // A picture of a million dots is no better than one of a few hundred spread over them. The
    // stride is odd, or it would show only one of each conjugate pair.
    const size_t every = (head.values.size() / kDots) | 1;
    std::vector<std::complex<double>> dots;
    for (size_t i = 0; i < head.values.size(); i += every) dots.push_back(head.values[i]);
    planes.planes.push_back({name(head), dots});
  }
  return draw(planes);
}

}  // namespace lrnn::cli
