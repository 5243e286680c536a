#include "experiments/spectrum.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <sstream>

#include "cli/command.h"
#include "cli/figures.h"
#include "cli/find.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/spectrum_steps.h"
#include "cli/spectrum_text.h"
#include "figures/draw.h"
#include "figures/svg.h"
#include "figures/table.h"

namespace lrnn::cli {
namespace {

using experiments::HeadSpectrum;

struct SpectrumArguments {
  std::vector<std::string> runs;
  std::string out;
  int64_t samples = 0, seed = -1;
  std::vector<int64_t> lengths;
  bool json = false, steps = false;
};

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
  Json out = {{"layer", head.layer},
              {"head", head.head},
              {"kind", experiments::name(head.kind)},
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
  if (head.kind != experiments::Kind::kJacobian) return out;
  out["fit"] = Json::object();
  for (const auto& [token, z] : head.fit) out["fit"][task.word(token)] = {z.real(), z.imag()};
  return out;
}

// Lines of at most 92 letters.
std::string wrapped(const std::string& text) {
  std::string out, line;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (!line.empty() && figures::letters(line) + 1 + figures::letters(word) > 92)
      out += line + "\n", line.clear();
    line += (line.empty() ? "" : " ") + word;
  }
  return out + line + "\n";
}

void print(const std::vector<HeadSpectrum>& heads, const tasks::Task& task) {
  // Columns for every letter would not fit beside the rest; small alphabets are the interesting
  // ones.
  auto shown = task.letters();
  if (shown.size() > kMostLetters) shown.clear();
  const bool fits = std::any_of(heads.begin(), heads.end(), [](const auto& head) {
    return head.kind == experiments::Kind::kJacobian;
  });
  const bool gates = std::all_of(heads.begin(), heads.end(), [](const auto& head) {
    return head.kind == experiments::Kind::kForgetGate;
  });
  const char* values = is_complex(heads) ? "real part, -1 … 1"
                       : gates           ? "forget gates, -1 … 1"
                                         : "eigenvalues, -1 … 1";
  std::vector<std::string> columns = {"layer",  "head", values,      "min",
                                      "median", "max",  "equal to 1"};
  for (const int64_t token : shown) columns.push_back("at " + task.word(token));
  for (const int64_t token : shown)
    if (fits) columns.push_back("fit " + task.word(token));
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
    const auto values_at = [&](const std::map<int64_t, std::complex<double>>& by_token) {
      for (const int64_t token : shown) {
        const auto at = by_token.find(token);
        row.push_back(at == by_token.end() ? "–" : complex(at->second));
      }
    };
    values_at(head.by_token);
    if (fits) values_at(head.fit);
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

// What the numbers are, once for every kind among them.
std::vector<experiments::Kind> kinds_of(const std::vector<Seen>& all) {
  std::vector<experiments::Kind> out;
  for (const auto& seen : all)
    for (const auto& head : seen.heads)
      if (std::find(out.begin(), out.end(), head.kind) == out.end()) out.push_back(head.kind);
  return out;
}

// Layers that a hybrid model has beside those with something to show.
std::string without(const Seen& seen) {
  std::string out;
  for (int64_t layer = 1; layer <= seen.run.model->config().layers; ++layer)
    if (std::none_of(seen.heads.begin(), seen.heads.end(),
                     [&](auto& h) { return h.layer == layer; }))
      out += (out.empty() ? "" : ", ") + std::to_string(layer);
  return out;
}

constexpr int64_t kUsualSamples = 32;

int show_run_by_step(const SpectrumArguments& a) {
  check(a.runs.size() == 1, "--steps follows one run, got ", a.runs.size());
  experiments::StepOptions options{.lengths = a.lengths, .seed = a.seed};
  if (a.samples) options.words = a.samples;
  return show_steps(a.runs[0], options, a.out, a.json);
}

int show_spectrum(SpectrumArguments a) {
  if (a.steps) return show_run_by_step(a);
  check(a.lengths.empty(), "--lengths goes with --steps");
  if (!a.samples) a.samples = kUsualSamples;
  if (show_betas(a.runs, a.samples, a.json)) return kDone;
  std::vector<Seen> all;
  std::vector<NamedSpectrum> drawn;
  for (const auto& folder : a.runs) {
    Seen seen{open_run(folder), {}};
    seen.heads =
        experiments::spectrum(*seen.run.model, *seen.run.task,
                              uint64_t(a.seed >= 0 ? a.seed : seen.run.config.seed), a.samples);
    drawn.push_back(named(folder, seen.run, seen.heads));
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
    for (const auto kind : kinds_of(all))
      out["kinds"][experiments::name(kind)] = experiments::about(kind);
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
      std::cout << "layers with nothing to show (attention, or a mixer that does not say): "
                << layers << "\n";
  }
  std::cout << "\n";
  for (const auto kind : kinds_of(all)) std::cout << wrapped(experiments::about(kind));
  std::cout << "figure: " << figure << "\n";
  return kDone;
}

}  // namespace

Action spectrum(CLI::App& app) {
  auto a = std::make_shared<SpectrumArguments>();
  add_run(app, a->runs, "a run folder, or a checkpoint in one; several side by side");
  add_figure(app, a->out, "RUN/figures/spectrum.svg");
  add_number(app, "--samples", a->samples,
             "sequences to read (default: 32; with --steps 256 a length)", Least::kAboveZero);
  add_number(app, "--seed", a->seed, "of the sequences (default: the run's)", Least::kZero);
  app.add_flag("--steps", a->steps,
               "follow one run through its checkpoints: what moved when it got better or worse");
  app.add_option("--lengths", a->lengths,
                 "with --steps: of the words (default: training's longest, doubled to the test's)")
      ->delimiter(',')
      ->check(CLI::Range(int64_t(2), int64_t(1) << 30).description(""))
      ->type_name("N,N,…");
  app.add_flag("--json", a->json, "one JSON object");
  app.footer(
      "One Householder factor per token: 1 - beta of each head. Several, RWKV-7 and full matrices: "
      "the\n"
      "eigenvalues of their product, in the complex plane. Mamba, GLA and other diagonal states: "
      "their\n"
      "entries; mLSTM: the forget gate; sLSTM, which is not linear: the Jacobian at the states it "
      "visits.\n"
      "Of a language model with betas: how many lie above 1, by layer and head, and at which "
      "tokens "
      "of\n"
      "held-out text. "
      "Attention multiplies nothing and has none. A mixer of your own says what it applies "
      "through\n"
      "Context::observe (src/mixers/mixer.h).\n\n"
      "Example:\n  lrnn spectrum runs/x\n  lrnn spectrum runs/compiled runs/trained -o two.svg\n"
      "  lrnn train configs/quick/parity_delta_net_2.yaml train.keep=100 train.checkpoint_every=20 "
      "--out runs/x &&\n  lrnn spectrum runs/x --steps");
  return [a] { return show_spectrum(*a); };
}

}  // namespace lrnn::cli
