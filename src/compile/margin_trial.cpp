#include "base/random.h"
#include "compile/margin.h"
#include "compile/words.h"
#include "ops/torch.h"

namespace lrnn::compile {
namespace {

using torch::Tensor;

std::vector<Tensor> parameters_of(model::Model& model) {
  std::vector<Tensor> out;
  for (const auto& item : model.named_parameters()) out.push_back(item.value());
  return out;
}

// 1 or -1 for every weight.
Tensor signs(const Tensor& like, uint64_t seed, uint64_t direction, uint64_t tensor) {
  Random random(seed, direction, tensor);
  Tensor out = torch::empty(like.sizes(), torch::kFloat32);
  float* to = out.data_ptr<float>();
  for (int64_t i = 0; i < out.numel(); ++i) to[i] = random.below(2) ? 1 : -1;
  return out.to(like.scalar_type());
}

// The sign of the gradient of the least lead of a right answer over another one.
std::vector<Tensor> towards_mistakes(model::Model& model, const Automaton& a, const Tokens& tokens,
                                     const MarginTrialOptions& options) {
  std::vector<int64_t> in = tokens.before, want(in.size(), -1);
  int64_t state = a.start;
  const auto word = long_words(a, options.seed)[1];
  for (int64_t t = 0; t < options.length; ++t) {
    const int64_t x = word.letter(t, state);
    state = a.step(state, x);
    in.push_back(tokens.symbol[size_t(x)]), want.push_back(tokens.answer[size_t(state)]);
  }
  const auto parameters = parameters_of(model);
  model::State memory;
  const Tensor logits = model.forward(torch::tensor(in).unsqueeze(0), memory)[0];
  const Tensor asked = torch::tensor(want), right = asked.clamp_min(0).unsqueeze(-1);
  const Tensor lead =
      logits.gather(-1, right).squeeze(-1) - logits.scatter(-1, right, -1e30).amax(-1);
  const auto gradients = torch::autograd::grad({lead.masked_fill(asked < 0, 1e30).min()},
                                               parameters, {}, {}, false, true);
  std::vector<Tensor> out;
  for (size_t i = 0; i < parameters.size(); ++i)
    out.push_back(gradients[i].defined() ? -gradients[i].sign() : torch::zeros_like(parameters[i]));
  return out;
}

}  // namespace

MarginTrial try_margin(model::Model& model, const Automaton& a, const Tokens& tokens,
                       const MarginTrialOptions& options) {
  const auto parameters = parameters_of(model);
  std::vector<Tensor> before;
  for (const auto& p : parameters) before.push_back(p.detach().clone());
  const auto worst = towards_mistakes(model, a, tokens, options);
  MarginTrial out;
  const torch::NoGradGuard no_grad;
  for (int64_t d = 0; d <= options.random; ++d) {
    for (size_t i = 0; i < parameters.size(); ++i) {
      Tensor sign = signs(before[i], options.seed, uint64_t(d), i);
      if (d == options.random) sign = torch::where(worst[i] == 0, sign, worst[i]);
      Tensor(parameters[i]).copy_(before[i] + options.weight * sign);
    }
    ++out.directions;
    out.wrong += short_run(model, a, tokens, options.length, options.seed).wrong > 0;
  }
  for (size_t i = 0; i < parameters.size(); ++i) Tensor(parameters[i]).copy_(before[i]);
  return out;
}

}  // namespace lrnn::compile
