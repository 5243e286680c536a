#include "experiments/through_steps.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "experiments/checkpoints.h"
#include "experiments/spectrum.h"
#include "training/batch.h"

namespace lrnn::experiments {
namespace {

using torch::Tensor;
using training::Batch;

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kSpectrumWords = 16;
constexpr double kLeast = 1e-12;  // of a determinant, before its logarithm

// By how much the right answer leads at each target [targets], in the order of the examples.
Tensor leads(model::Model& model, const Batch& batch) {
  model::State state;
  const Tensor logits = model.forward(batch.input, state, batch.context);
  const Tensor rows = logits.view({-1, logits.size(-1)}).to(torch::kFloat64);
  const Tensor asked = batch.target.ge(0).nonzero().squeeze(1);
  const Tensor at = rows.index_select(0, asked),
               target = batch.target.index_select(0, asked).unsqueeze(1);
  const Tensor others = at.scatter(1, target, -std::numeric_limits<double>::infinity());
  return (at.gather(1, target).squeeze(1) - std::get<0>(others.max(1))).contiguous();
}

// The least lead of each word of that length.
std::vector<double> margins(model::Model& model, const tasks::Task& task, uint64_t seed,
                            int64_t length, int64_t words) {
  std::vector<double> out;
  const int64_t at_once = std::max<int64_t>(1, training::kTokensPerForward / length);
  for (int64_t first = 0; first < words; first += at_once) {
    const auto examples = training::draw(task, seed, tasks::Split::kEval, {length, length}, first,
                                         std::min(at_once, words - first));
    const Tensor all = leads(
        model, training::make_batch(examples.data(), int64_t(examples.size()), task.vocabulary()));
    const double* lead = all.const_data_ptr<double>();
    for (const auto& example : examples) {
      double least = std::numeric_limits<double>::infinity();
      for (const int64_t target : example.target)
        if (target >= 0) least = std::min(least, *lead++);
      out.push_back(least);
    }
  }
  return out;
}

LengthLook look_at_length(model::Model& model, const tasks::Task& task, uint64_t seed,
                          int64_t length, int64_t words) {
  auto all = margins(model, task, seed, length, words);
  LengthLook out{.length = length, .words = int64_t(all.size())};
  out.wrong = std::count_if(all.begin(), all.end(), [](double lead) { return !(lead > 0); });
  std::sort(all.begin(), all.end());
  out.margin = all[all.size() / 2], out.weakest = all[all.size() / 20];
  return out;
}

// What the layers tell of some words, by their names without "layers.0.".
std::vector<std::map<std::string, Tensor>> observe(model::Model& model, const tasks::Task& task,
                                                   uint64_t seed, int64_t length, int64_t words) {
  std::vector<std::map<std::string, Tensor>> out(size_t(model.config().layers));
  for (int64_t i = 0; i < words; ++i) {
    const auto tokens = task.sample(seed, tasks::Split::kEval, uint64_t(i), {length, length}).input;
    mixers::Context context;
    context.observe = [&](const std::string& name, const Tensor& value) {
      if (!name.starts_with("layers.")) return;  // the model itself tells something, too
      const size_t dot = name.find('.', 7);      // behind "layers.0"
      auto& of = out[size_t(std::stoll(name.substr(7)))][name.substr(dot + 1)];
      // Positions of all words one after the other: [1,T,..].
      of = of.defined() ? torch::cat({of, value}, 1) : value;
    };
    model::State state;
    model.forward(torch::tensor(tokens, torch::kInt64).unsqueeze(0), state, context);
  }
  return out;
}

// `alike` and `kept` of head h, from k [1,T,N,H,K] and beta [1,T,N,H].
void look_at_keys(const std::map<std::string, Tensor>& told, int64_t h, HeadLook& out) {
  out.alike = out.kept = kNothing;
  if (!told.contains("k") || !told.contains("beta")) return;
  const Tensor k = told.at("k").select(3, h).flatten(0, 2).to(torch::kFloat64),
               beta = told.at("beta").select(3, h).flatten().to(torch::kFloat64);
  const Tensor size = k.square().sum(1);
  const double tokens = double(told.at("beta").size(1));
  if (!told.contains("log_gate"))
    out.kept =
        std::exp((1 - beta * size).abs().clamp_min(kLeast).log().sum().item<double>() / tokens);
  const Tensor reflects = beta.gt(1).nonzero().squeeze(1);
  if (reflects.numel() == 0) return;
  const Tensor keys = k.index_select(0, reflects);
  const Tensor mean = keys.t().matmul(keys) / keys.square().sum();
  out.alike = torch::linalg_eigvalsh(mean).max().item<double>();
}

// Words right at the length of training once what head `at` says is not heard: the columns of its
// layer's output projection are 0. NaN where the layer has none that is cut by heads.
template <class Margins>
double right_without(model::Model& model, const HeadLook& at, int64_t heads, Margins&& margins) {
  const auto parameters = model.named_parameters();
  const auto* found = parameters.find(cat("model.layers.", at.layer - 1, ".attn.o_proj.weight"));
  if (!found || found->size(1) % heads != 0) return kNothing;
  Tensor columns =
      found->detach().narrow(1, (at.head - 1) * (found->size(1) / heads), found->size(1) / heads);
  const Tensor before = columns.clone();
  columns.zero_();
  const auto all = margins();
  columns.copy_(before);
  return double(std::count_if(all.begin(), all.end(), [](double x) { return x > 0; }));
}

// Where no head can be silenced, the one whose letter moves the state farthest.
size_t find_decisive(model::Model& model, const tasks::Task& task, uint64_t seed, int64_t length,
                     int64_t words, const std::vector<HeadLook>& heads) {
  size_t out = 0;
  double least = std::numeric_limits<double>::infinity(), farthest = -1;
  bool silenced = false;
  for (size_t i = 0; i < heads.size(); ++i) {
    const auto count = std::count_if(heads.begin(), heads.end(),
                                     [&](const auto& h) { return h.layer == heads[i].layer; });
    const double right = right_without(model, heads[i], count,
                                       [&] { return margins(model, task, seed, length, words); });
    double far = 0;
    for (const auto& [token, z] : heads[i].by_token) far = std::max(far, std::abs(z - 1.0));
    if (!std::isnan(right)) {
      if (right < least) least = right, out = i;
      silenced = true;
    } else if (!silenced && far > farthest) {
      farthest = far, out = i;
    }
  }
  return out;
}

std::vector<int64_t> usual_lengths(const tasks::Task& task) {
  const int64_t trained = task.length(tasks::Split::kTrain).hi,
                tested = task.length(tasks::Split::kEval).hi;
  std::vector<int64_t> out;
  for (int64_t length = trained; length < tested; length *= 2) out.push_back(length);
  out.push_back(std::max(trained, tested));
  return out;
}

}  // namespace

StepLook look_at(model::Model& model, const tasks::Task& task, uint64_t seed, int64_t words,
                 const std::vector<int64_t>& lengths) {
  const torch::NoGradGuard no_gradients;
  StepLook out;
  const auto told = observe(model, task, seed, lengths.front(), kSpectrumWords);
  for (const auto& head : spectrum(model, task, seed, kSpectrumWords)) {
    HeadLook look{.layer = head.layer, .head = head.head, .by_token = head.by_token};
    look_at_keys(told[size_t(head.layer - 1)], head.head - 1, look);
    out.heads.push_back(std::move(look));
  }
  for (const int64_t length : lengths)
    out.lengths.push_back(look_at_length(model, task, seed, length, words));
  return out;
}

ThroughSteps through_steps(const std::string& folder, const StepOptions& options) {
  const Checkpoints checkpoints(folder + "/checkpoints");
  const auto steps = checkpoints.steps();
  if (steps.size() < 2)
    throw Error(cat(folder, " has ", steps.size(), " checkpoint", steps.size() == 1 ? "" : "s",
                    ", and how it got there takes two"),
                "train it with train.keep=1000 train.checkpoint_every=100, or so");
  ThroughSteps out;
  double best = -1;
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto at = checkpoints.path(steps[i]);
    if (const auto damage = Checkpoints::damage(at); !damage.empty()) {
      out.damaged.push_back(damage);
      continue;
    }
    const auto run = open(at);
    if (run.task->score() == tasks::Score::kText)
      throw Error("a text has no answers whose margin could be followed",
                  "leave out --steps, or name a run of another task");
    const auto seed = uint64_t(options.seed >= 0 ? options.seed : run.config.seed);
    const auto lengths = options.lengths.empty() ? usual_lengths(*run.task) : options.lengths;
    out.looks.push_back(look_at(*run.model, *run.task, seed, options.words, lengths));
    out.looks.back().step = steps[i];
    // The head that counts is looked for where most is right.
    const torch::NoGradGuard no_gradients;
    double right = 0;
    for (const auto& length : out.looks.back().lengths) right += 1 - length.error();
    if (right > best) {
      best = right;
      out.decisive = find_decisive(*run.model, *run.task, seed, lengths.front(), options.words,
                                   out.looks.back().heads);
    }
    if (options.progress) options.progress(int64_t(i + 1), int64_t(steps.size()));
  }
  check(out.looks.size() >= 2, folder, " has fewer than two whole checkpoints");
  return out;
}

}  // namespace lrnn::experiments
