#include "experiments/spectrum.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "cli/command.h"
#include "cli/open_run.h"
#include "cli/output.h"
#include "cli/spectrum_figure.h"
#include "figures/spectrum.h"
#include "figures/table.h"

namespace lrnn::cli {
namespace {

using experiments::HeadSpectrum;

struct SpectrumArguments {
  std::vector<std::string> runs;
  std::string out;
  int64_t samples = 32, seed = -1;
  bool json = false;
};

// Rows for every token would not fit beside the rest; small alphabets are the interesting ones.
constexpr int64_t kTokensShown = 6;

double quantile(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) return std::nan("");
  return sorted[std::min(sorted.size() - 1, size_t(share * double(sorted.size())))];
}

std::string complex(std::complex<double> z) {
  if (std::abs(z.imag()) < 5e-3) return decimals(z.real(), 2);
  return fmt::format("{:.2f} ± {:.2f}i", z.real(), std::abs(z.imag()));
}

Json to_json(const HeadSpectrum& head, const tasks::Task& task) {
  const auto reals = sorted_reals(head);
  const auto count = double(std::max<size_t>(head.values.size(), 1));
  double negative = 0, turning = 0;
  for (const auto z : head.values) negative += z.real()<0, turning += std::abs(z.imag())> 1e-3;
  Json by_token = Json::object();
  for (const auto& [token, z] : head.by_token) by_token[task.word(token)] = {z.real(), z.imag()};
  return {{"layer", head.layer},
          {"head", head.head},
          {"householders", head.householders},
          {"unit", head.unit},
          {"other", head.values.size()},
          {"negative_share", negative / count},
          {"complex_share", turning / count},
          {"real",
           {{"min", quantile(reals, 0)},
            {"q25", quantile(reals, 0.25)},
            {"median", quantile(reals, 0.5)},
            {"q75", quantile(reals, 0.75)},
            {"max", quantile(reals, 1)}}},
          {"by_token", by_token}};
}

void print(const std::vector<HeadSpectrum>& heads, const tasks::Task& task) {
  auto shown = task.letters();
  if (int64_t(shown.size()) > kTokensShown) shown.clear();
  const bool several = is_complex(heads);
  std::vector<std::string> columns = {
      "layer", "head",      several ? "real part, -1 … 1" : "eigenvalues, -1 … 1", "min", "median",
      "max",   "equal to 1"};
  for (const int64_t token : shown) columns.push_back("at " + task.word(token));
  figures::Table table(columns);
  for (const auto& head : heads) {
    const auto reals = sorted_reals(head);
    const double all = double(head.unit) + double(reals.size());
    std::vector<std::string> row = {std::to_string(head.layer),
                                    std::to_string(head.head),
                                    figures::bars(figures::shares(reals, 32)),
                                    decimals(quantile(reals, 0), 2),
                                    decimals(quantile(reals, 0.5), 2),
                                    decimals(quantile(reals, 1), 2),
                                    fmt::format("{:.0f} %", 100 * double(head.unit) / all)};
    for (const int64_t token : shown) {
      const auto at = head.by_token.find(token);
      row.push_back(at == head.by_token.end() ? "–" : complex(at->second));
    }
    table.row(row);
  }
  std::cout << table.text();
}

struct Seen {
  experiments::Run run;
  std::vector<HeadSpectrum> heads;
};

Json to_json(const Seen& seen) {
  Json list = Json::array();
  for (const auto& head : seen.heads) list.push_back(to_json(head, *seen.run.task));
  return {{"run", seen.run.folder},
          {"step", seen.run.step},
          {"damaged", seen.run.damaged},
          {"heads", list}};
}

// Layers that a hybrid model has beside those with eigenvalues.
std::string without(const Seen& seen) {
  std::string out;
  for (int64_t layer = 1; layer <= seen.run.model->config().layers; ++layer)
    if (std::none_of(seen.heads.begin(), seen.heads.end(),
                     [&](auto& h) { return h.layer == layer; }))
      out += (out.empty() ? "" : ", ") + std::to_string(layer);
  return out;
}

int show_spectrum(const SpectrumArguments& a) {
  std::vector<Seen> all;
  std::vector<NamedSpectrum> drawn;
  for (const auto& folder : a.runs) {
    Seen seen{open_run(folder), {}};
    seen.heads =
        experiments::spectrum(*seen.run.model, *seen.run.task,
                              uint64_t(a.seed >= 0 ? a.seed : seen.run.config.seed), a.samples);
    drawn.push_back({folder, seen.heads});
    all.push_back(std::move(seen));
  }
  const std::string figure = a.out.empty() ? a.runs[0] + "/figures/spectrum.svg" : a.out;
  write_file(figure, spectrum_figure(drawn));
  if (a.json) {
    Json out = to_json(all[0]);
    if (all.size() > 1) {
      out = {{"runs", Json::array()}};
      for (const auto& seen : all) out["runs"].push_back(to_json(seen));
    }
    out["figure"] = figure;
    print_json(out);
    return kDone;
  }
  for (const auto& seen : all) {
    if (all.size() > 1)
      std::cout << fmt::format("{}{} (step {})\n", &seen == &all[0] ? "" : "\n", seen.run.folder,
                               seen.run.step);
    print(seen.heads, *seen.run.task);
    if (const auto layers = without(seen); !layers.empty())
      std::cout << "layers without eigenvalues (attention): " << layers << "\n";
  }
  std::cout << "\nEigenvalues of the matrix that a token applies to the state. -1 is a reflection, "
               "which\n"
               "counts modulo 2; a pair off the real line is a rotation, which counts further.\n"
               "figure: "
            << figure << "\n";
  return kDone;
}

}  // namespace

Action spectrum(CLI::App& app) {
  auto a = std::make_shared<SpectrumArguments>();
  app.add_option("RUN", a->runs, "a run folder, or a checkpoint in one; several side by side")
      ->required();
  app.add_option("-o,--out", a->out, "the figure (default: RUN/figures/spectrum.svg)")
      ->type_name("FILE");
  app.add_option("--samples", a->samples, "sequences to read (default: 32)")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  app.add_option("--seed", a->seed, "of the sequences (default: the run's)")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  app.add_flag("--json", a->json, "one JSON object");
  app.footer(
      "One Householder factor per token: 1 - beta of each head. Several, RWKV-7 and full matrices: "
      "the\n"
      "eigenvalues of their product, in the complex plane. Mamba, GLA and other diagonal states: "
      "their\n"
      "entries; mLSTM and sLSTM: the forget gate. Attention multiplies nothing and has none.\n\n"
      "Example:\n  lrnn spectrum runs/x\n  lrnn spectrum runs/compiled runs/trained -o two.svg");
  return [a] { return show_spectrum(*a); };
}

}  // namespace lrnn::cli
