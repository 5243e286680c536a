#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "cli/figures.h"
#include "experiments/identity.h"
#include "figures/draw.h"

// `lrnn spectrum`: the figure, a row a head and a colour a letter.
namespace lrnn::cli {
namespace {

using experiments::HeadSpectrum;
using experiments::Kind;

constexpr size_t kBins = 80, kDots = 600;

// With the run in front where there are several.
std::string head_name(const NamedSpectrum& run, const HeadSpectrum& head, bool several) {
  const auto folder = run.name.substr(run.name.find_last_of('/') + 1);
  const auto name = fmt::format("layer {}, head {}", head.layer, head.head);
  return several ? folder + ": " + name : name;
}

// The letters of all runs by their words, which are what a reader knows them by.
class Alphabet {
 public:
  explicit Alphabet(const std::vector<NamedSpectrum>& runs) {
    for (const auto& run : runs) {
      const auto letters = run.task->letters();
      for (const int64_t token : letters) add(run.task->word(token));
      for (const auto& head : run.heads)
        for (const int64_t token : head.tokens)
          others_ |= std::find(letters.begin(), letters.end(), token) == letters.end();
    }
    told_ = words_.size() <= kMostLetters;
    if (!told_)
      letters_ = {{fmt::format("all {} letters", words_.size()), figures::style_of(runs[0].key)}};
    else if (others_)
      letters_.push_back({"other tokens", figures::style(figures::kStyles - 1)});
  }

  const std::vector<figures::Letter>& letters() const { return letters_; }
  size_t index(const tasks::Task& task, int64_t token) const {
    if (!told_) return 0;
    const auto letters = task.letters();
    if (std::find(letters.begin(), letters.end(), token) == letters.end())
      return letters_.size() - 1;
    return size_t(std::find(words_.begin(), words_.end(), task.word(token)) - words_.begin());
  }

 private:
  void add(const std::string& word) {
    if (std::find(words_.begin(), words_.end(), word) != words_.end()) return;
    letters_.push_back({"at " + word, figures::style(words_.size())});
    words_.push_back(word);
  }

  std::vector<std::string> words_;
  std::vector<figures::Letter> letters_;
  bool told_ = true, others_ = false;
};

std::map<int64_t, size_t> indices(const Alphabet& alphabet, const NamedSpectrum& run,
                                  const HeadSpectrum& head) {
  std::map<int64_t, size_t> out;
  for (const int64_t token : head.tokens)
    if (!out.contains(token)) out[token] = alphabet.index(*run.task, token);
  return out;
}

figures::Strip strip(const Alphabet& alphabet, const NamedSpectrum& run, const HeadSpectrum& head,
                     bool several) {
  auto index = indices(alphabet, run, head);
  std::vector<std::vector<double>> reals(std::max<size_t>(1, alphabet.letters().size()));
  for (size_t i = 0; i < head.values.size(); ++i)
    reals[index[head.tokens[i]]].push_back(head.values[i].real());
  figures::Strip out{head_name(run, head, several), {}};
  for (const auto& of_letter : reals)
    out.shares.push_back(figures::shares(of_letter, kBins, head.values.size()));
  return out;
}

figures::Plane plane(const Alphabet& alphabet, const NamedSpectrum& run, const HeadSpectrum& head,
                     bool several) {
  // A picture of a million dots is no better than one of a few hundred spread over them. The
  // stride is odd, or it would show only one of each conjugate pair.
  const size_t every = (head.values.size() / kDots) | 1;
  auto index = indices(alphabet, run, head);
  figures::Plane out{head_name(run, head, several), {}};
  // Dots on the same spot: a few are as dark as all.
  std::map<std::tuple<size_t, int, int>, int> here;
  for (size_t i = 0; i < head.values.size(); i += every) {
    const auto z = head.values[i];
    const size_t letter = index[head.tokens[i]];
    const std::tuple spot(letter, int(std::lround(500 * z.real())),
                          int(std::lround(500 * z.imag())));
    if (here[spot]++ < 8) out.dots.push_back({z, letter});
  }
  return out;
}

bool all_are(const std::vector<NamedSpectrum>& runs, Kind kind) {
  return std::all_of(runs.begin(), runs.end(), [&](const auto& run) {
    return std::all_of(run.heads.begin(), run.heads.end(),
                       [&](const auto& head) { return head.kind == kind; });
  });
}

}  // namespace

NamedSpectrum named(const std::string& name, const experiments::Run& run,
                    const std::vector<HeadSpectrum>& heads) {
  return {name, heads, experiments::identity(run.config.model).key, run.task.get()};
}

std::vector<double> sorted_reals(const HeadSpectrum& head) {
  std::vector<double> out;
  for (const auto z : head.values) out.push_back(z.real());
  std::sort(out.begin(), out.end());
  return out;
}

bool is_complex(const std::vector<HeadSpectrum>& heads) {
  return std::any_of(heads.begin(), heads.end(), [](auto& h) {
    return h.householders > 1 || std::any_of(h.values.begin(), h.values.end(),
                                             [](auto z) { return std::abs(z.imag()) > 1e-3; });
  });
}

std::string spectrum_figure(const std::vector<NamedSpectrum>& runs) {
  const bool several = runs.size() > 1, jacobians = all_are(runs, Kind::kJacobian),
             gates = all_are(runs, Kind::kForgetGate);
  std::string title = jacobians ? "Eigenvalues of the Jacobian"
                      : gates   ? "Forget gates in use"
                                : "Eigenvalues in use";
  if (!several) title += ": " + runs[0].name;
  const Alphabet alphabet(runs);
  if (std::none_of(runs.begin(), runs.end(), [](auto& run) { return is_complex(run.heads); })) {
    figures::Strips strips{title,
                           all_are(runs, Kind::kHouseholders) ? "eigenvalue along the key, 1 − β"
                           : gates                            ? "forget gate"
                                                              : "eigenvalue",
                           alphabet.letters(),
                           {}};
    for (const auto& run : runs)
      for (const auto& head : run.heads) strips.rows.push_back(strip(alphabet, run, head, several));
    return draw(strips);
  }
  figures::Planes planes{title, alphabet.letters(), {}};
  for (const auto& run : runs)
    for (const auto& head : run.heads) planes.planes.push_back(plane(alphabet, run, head, several));
  return draw(planes);
}

}  // namespace lrnn::cli
