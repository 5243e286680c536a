#include "experiments/state_walk.h"

#include "base/error.h"

namespace lrnn::experiments {
namespace {

using torch::Tensor;

bool is_householders(const Observed& told) {
  return told.contains("k") && told.contains("v") && told.contains("beta");
}

// Of the one sequence, in float32: [T,..]. Undefined where it was not told.
Tensor of(const Observed& told, const char* name) {
  const auto at = told.find(name);
  if (at == told.end() || !at->second.defined()) return {};
  check(at->second.size(0) == 1, "the mixer tells '", name, "' of several sequences");
  return at->second[0].to(torch::kFloat32).contiguous();
}

// [H,K] and [H,V] as [H,K,V]
Tensor outer_product(const Tensor& key, const Tensor& value) {
  return key.unsqueeze(-1) * value.unsqueeze(-2);
}

}  // namespace

bool StateWalk::possible(const Observed& told) {
  return is_householders(told) || (told.contains("write") && told.contains("value"));
}

int64_t StateWalk::steps(const Observed& told) {
  return is_householders(told) ? told.at("k").size(2) : 1;
}

void StateWalk::begin(const Observed& told) {
  if (state_.defined()) return;
  state_ = of(told, "initial_state");
  if (state_.defined()) return;
  const bool reflects = is_householders(told);
  const Tensor key = told.at(reflects ? "k" : "write"), value = told.at(reflects ? "v" : "value");
  state_ = torch::zeros({key.size(-2), key.size(-1), value.size(-1)},
                        key.options().dtype(torch::kFloat32));
}

void StateWalk::read(const Observed& told, const Look& look) {
  check(possible(told), "this mixer tells of no matrix state");
  begin(told);
  is_householders(told) ? householders(told, look) : written(told, look);
}

// S <- gate S, then for each factor S <- S + beta k (v - S^T k)^T
void StateWalk::householders(const Observed& told, const Look& look) {
  const Tensor k = of(told, "k"), v = of(told, "v"), beta = of(told, "beta");
  Tensor gate = of(told, "log_gate");
  // [T,H], or [T,H,K] for gates of key channels
  if (gate.defined()) gate = gate.exp().unsqueeze(-1);
  if (gate.defined() && gate.dim() == 3) gate = gate.unsqueeze(-1);
  for (int64_t t = 0; t < k.size(0); ++t)
    for (int64_t j = 0; j < k.size(1); ++j) {
      look(state_);
      if (j == 0 && gate.defined()) state_ = state_ * gate[t];
      const Tensor key = k[t][j], read = torch::matmul(key.unsqueeze(-2), state_).squeeze(-2);
      state_ = state_ + outer_product(key, beta[t][j].unsqueeze(-1) * (v[t][j] - read));
    }
}

// S <- A S + write value^T
void StateWalk::written(const Observed& told, const Look& look) {
  const Tensor write = of(told, "write"), value = of(told, "value");
  const Tensor gate = of(told, "gate"), log_w = of(told, "log_w"), kk = of(told, "kk"),
               a = of(told, "a"), forget = of(told, "forget_gate"), input = of(told, "log_write");
  check(gate.defined() || forget.defined() || (log_w.defined() && kk.defined() && a.defined()),
        "the mixer tells what it writes to its state, and not what it does to it");
  for (int64_t t = 0; t < write.size(0); ++t) {
    look(state_);
    Tensor key = write[t];
    if (gate.defined()) {
      state_ = gate[t].unsqueeze(-1) * state_;
    } else if (log_w.defined()) {
      const Tensor seen = torch::matmul(kk[t].unsqueeze(-2), state_).squeeze(-2);
      state_ = log_w[t].exp().unsqueeze(-1) * state_ - outer_product(a[t] * kk[t], seen);
    } else {
      Tensor kept = forget[t];
      if (input.defined()) {
        const Tensor before = kept.log() + (largest_.defined() ? largest_ : input[t]);
        const Tensor now = torch::maximum(before, input[t]);
        kept = (before - now).exp(), key = key * (input[t] - now).exp().unsqueeze(-1);
        largest_ = now;
      }
      state_ = kept.unsqueeze(-1).unsqueeze(-1) * state_;
    }
    state_ = state_ + outer_product(key, value[t]);
  }
}

}  // namespace lrnn::experiments
