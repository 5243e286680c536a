#include "cli/spectrum_figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "figures/spectrum.h"

namespace lrnn::cli {
namespace {

constexpr size_t kBins = 80, kDots = 600;

std::string name(const experiments::HeadSpectrum& head) {
  return fmt::format("layer {}, head {}", head.layer, head.head);
}
// With the run in front where there are several.
std::string name(const NamedSpectrum& run, const experiments::HeadSpectrum& head, bool several) {
  const auto folder = run.name.substr(run.name.find_last_of('/') + 1);
  return several ? folder + ": " + name(head) : name(head);
}

}  // namespace

std::vector<double> sorted_reals(const experiments::HeadSpectrum& head) {
  std::vector<double> out;
  for (const auto z : head.values) out.push_back(z.real());
  std::sort(out.begin(), out.end());
  return out;
}

bool is_complex(const std::vector<experiments::HeadSpectrum>& heads) {
  return std::any_of(heads.begin(), heads.end(), [](auto& h) {
    return h.householders > 1 || std::any_of(h.values.begin(), h.values.end(),
                                             [](auto z) { return std::abs(z.imag()) > 1e-3; });
  });
}

std::string spectrum_figure(const std::vector<NamedSpectrum>& runs) {
  const bool several = runs.size() > 1;
  std::string title = "Eigenvalues in use";
  if (!several) title += ": " + runs[0].name;
  if (std::none_of(runs.begin(), runs.end(), [](auto& run) { return is_complex(run.heads); })) {
    const auto& first = runs[0].heads[0];
    figures::Strips strips{
        title, first.householders ? "eigenvalue along the key, 1 − β" : "eigenvalue", {}};
    for (const auto& run : runs)
      for (const auto& head : run.heads)
        strips.rows.push_back(
            {name(run, head, several), figures::shares(sorted_reals(head), kBins)});
    return draw(strips);
  }
  figures::Planes planes{title, {}};
  for (const auto& run : runs)
    for (const auto& head : run.heads) {
      // A picture of a million dots is no better than one of a few hundred spread over them. The
      // stride is odd, or it would show only one of each conjugate pair.
      const size_t every = (head.values.size() / kDots) | 1;
      std::vector<std::complex<double>> dots;
      std::map<std::pair<int, int>, int> here;  // dots on the same spot: a few are as dark as all
      for (size_t i = 0; i < head.values.size(); i += every) {
        const auto z = head.values[i];
        if (here[{int(std::lround(500 * z.real())), int(std::lround(500 * z.imag()))}]++ < 8)
          dots.push_back(z);
      }
      planes.planes.push_back({name(run, head, several), dots});
    }
  return draw(planes);
}

}  // namespace lrnn::cli
