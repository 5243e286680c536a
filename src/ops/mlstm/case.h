#pragma once
#include "ops/mlstm/mlstm.h"
#include "ops/problem.h"

namespace lrnn::ops {

struct MlstmCase {
  int64_t B = 2, T = 5, H = 2, K = 3, V = 3;
  bool state = true;
  std::vector<int64_t> lengths = {};
  bool alike = false;  // keys and queries look the same way: n . q, by which h is divided, is not 0
};

inline const std::vector<MlstmCase> kMlstmCases = {
    {.B = 3, .T = 1, .H = 1, .K = 1, .V = 1},
    {.B = 3, .T = 7, .H = 2, .K = 5, .V = 3, .state = false},
    {.B = 1, .T = 64, .H = 2, .K = 16, .V = 20},
    {.B = 2, .T = 65, .H = 3, .K = 33, .V = 16},
    {.B = 1, .T = 200, .H = 2, .K = 8, .V = 32, .state = false},
    {.B = 1, .T = 170, .H = 1, .K = 64, .V = 64},
    {.B = 1, .T = 176, .H = 2, .K = 8, .V = 9, .lengths = {5, 0, 130, 1, 40}},
};

inline Mlstm make_mlstm(const MlstmCase& c, torch::Dtype dtype = torch::kFloat64) {
  torch::manual_seed(1);
  const auto key = [&] {
    const Tensor x = normal({c.B, c.T, c.H, c.K});
    return (c.alike ? 1 + 0.3 * x : x).to(dtype);
  };
  Mlstm in;
  in.q = key(), in.k = key();
  in.v = normal({c.B, c.T, c.H, c.V}).to(dtype);
  in.i = (2 * normal({c.B, c.T, c.H})).to(dtype);
  in.f = (2 + 2 * normal({c.B, c.T, c.H})).to(dtype);
  if (c.state) {
    const int64_t S = sequences(c.B, c.lengths);
    const auto type = wide(dtype);
    in.state.C = normal({S, c.H, c.K, c.V}).to(type);
    in.state.n = (c.alike ? uniform({S, c.H, c.K}) : normal({S, c.H, c.K})).to(type);
    in.state.m = normal({S, c.H}).to(type);
  }
  in.cu_seqlens = bounds(c.lengths);
  return in;
}

inline std::vector<MlstmCase> typical_mlstms() {
  return {{.B = 2, .T = 67, .H = 2, .K = 16, .V = 24, .alike = true},
          {.B = 1, .T = 130, .H = 2, .K = 64, .V = 64, .alike = true}};
}

}  // namespace lrnn::ops
