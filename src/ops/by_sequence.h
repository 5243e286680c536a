#pragma once
#include "ops/declare.h"

namespace lrnn::ops {

// A definition of sequences of one length, for packed ones, too: one after the other.
template <class In>
typename In::Result by_sequence(const In& in, typename In::Result (*dense)(const In&)) {
  const auto no_autocast = without_autocast();
  if (!in.cu_seqlens.defined()) return dense(in);
  typename In::Result out;
  const auto to = tensors(out);
  std::vector<std::vector<Tensor>> parts(to.size());
  for (int64_t s = 0; s + 1 < in.cu_seqlens.size(0); ++s) {
    const int64_t begin = in.cu_seqlens[s].template item<int64_t>(),
                  end = in.cu_seqlens[s + 1].template item<int64_t>();
    In one = in;
    one.cu_seqlens = Tensor();
    each_tensor(one, [&](Tensor& x, const Field& field) {
      if (!x.defined()) return;
      if (field.shape[0] == 'S') x = x.slice(0, s, s + 1);
      if (field.shape[0] == 'B') x = x.slice(1, begin, end);
    });
    auto part = dense(one);
    for (size_t i = 0; i < to.size(); ++i) parts[i].push_back(*tensors(part)[i]);
  }
  size_t i = 0;
  each_tensor(out, [&](Tensor& x, const Field& field) {
    const auto& all = parts[i++];
    if (all.at(0).defined()) x = torch::cat(all, field.shape[0] == 'S' ? 0 : 1);
  });
  return out;
}

// What scores are multiplied with unless somebody says otherwise: K^-1/2.
inline double scale_of(const std::optional<double>& given, const Tensor& keys) {
  return given ? *given : 1 / std::sqrt(double(keys.sym_size(-1).guard_int(__FILE__, __LINE__)));
}

}  // namespace lrnn::ops
