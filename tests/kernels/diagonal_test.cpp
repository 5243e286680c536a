#include "kernels/diagonal.h"

#include "tests/kernels/loops.h"

// The recurrence of gated linear attention and RWKV-7 against loops, without torch.
namespace lrnn::kernels {
namespace {

struct DiagonalProblem {
  int64_t T, K, V;
  bool rank, negative;
  double scale = 0.3;
  std::vector<Values> in;  // q, k, v, log_decay, kk, rate, state
  Values d_o, d_final;

  DiagonalProblem(int64_t T_, int64_t K_, int64_t V_, bool rank_, bool negative_)
      : T(T_), K(K_), V(V_), rank(rank_), negative(negative_) {
    const std::vector<int64_t> sizes = {T * K, T * K, T * V, T * K, T * K, T * K, K * V};
    const double unit = 1.7 / std::sqrt(double(K));  // kk of length about 1
    for (size_t i = 0; i < sizes.size(); ++i)
      in.push_back(i == 3   ? draw_values(i, sizes[i], -1, 0)
                   : i == 4 ? draw_values(i, sizes[i], -unit, unit)
                   : i == 5 ? draw_values(i, sizes[i], 0, 1.5)
                            : draw_values(i, sizes[i], -1, 1));
    d_o = draw_values(20, T * V, -1, 1), d_final = draw_values(21, K * V, -1, 1);
  }

  bool reads(size_t input) const { return rank || (input != 4 && input != 5); }
  friend std::ostream& operator<<(std::ostream& out, const DiagonalProblem& p) {
    return out << "T " << p.T << " K " << p.K << " V " << p.V;
  }
  double loss(const std::vector<Values>& x, Values* o_out = nullptr,
              Values* state_out = nullptr) const {
    Values S = x[6], o(T * V);
    double total = 0;
    for (int64_t t = 0; t < T; ++t)
      for (int64_t c = 0; c < V; ++c) {
        double read = 0;
        for (int64_t i = 0; rank && i < K; ++i) read += x[4][t * K + i] * S[i * V + c];
        for (int64_t i = 0; i < K; ++i) {
          const double e = std::exp(x[3][t * K + i]);
          double& s = S[i * V + c];
          s = (negative ? 2 * e - 1 : e) * s + x[1][t * K + i] * x[2][t * V + c] -
              x[5][t * K + i] * x[4][t * K + i] * read;
          o[t * V + c] += scale * x[0][t * K + i] * s;
        }
        total += o[t * V + c] * d_o[t * V + c];
      }
    for (int64_t i = 0; i < K * V; ++i) total += S[i] * d_final[i];
    if (o_out) *o_out = o;
    if (state_out) *state_out = S;
    return total;
  }
};

template <class F> struct DiagonalRun {
  std::vector<std::vector<F>> in, d;  // gradients in the order of the inputs
  std::vector<F> out, state;

  explicit DiagonalRun(const DiagonalProblem& p) : out(p.T * p.V), state(p.K * p.V) {
    for (const auto& x : p.in) in.emplace_back(x.begin(), x.end()), d.emplace_back(x.size());
    const auto rows = [&](std::vector<F>& x, int64_t n) {
      return Rows{x.data(), p.T * n, n, 0, n};
    };
    DiagonalForward f;
    f.type = sizeof(F) == 8 ? Type::kFloat64 : Type::kFloat32;
    f.B = f.S = f.H = 1, f.T = p.T, f.K = p.K, f.V = p.V, f.scale = p.scale;
    f.negative = p.negative;
    f.q = rows(in[0], p.K), f.k = rows(in[1], p.K), f.v = rows(in[2], p.V);
    f.log_decay = rows(in[3], p.K), f.state = in[6].data();
    if (p.rank) f.kk = rows(in[4], p.K), f.rate = rows(in[5], p.K);
    std::vector<F> states(p.T / kDiagonalChunk * p.K * p.V + 1);
    f.o = rows(out, p.V), f.final_state = state.data(), f.states = states.data();
    diagonal_forward(f, serial);

    DiagonalBackward g;
    static_cast<DiagonalInputs&>(g) = f;
    std::vector<F> d_o(p.d_o.begin(), p.d_o.end()), d_final(p.d_final.begin(), p.d_final.end());
    g.d_o = rows(d_o, p.V), g.d_final_state = d_final.data(), g.states = states.data();
    g.dq = rows(d[0], p.K), g.dk = rows(d[1], p.K), g.dv = rows(d[2], p.V);
    g.dlog_decay = rows(d[3], p.K), g.dstate = d[6].data();
    if (p.rank) g.dkk = rows(d[4], p.K), g.drate = rows(d[5], p.K);
    diagonal_backward(g, serial);
  }
};

TEST(DiagonalKernel, EveryInstructionSetEqualsTheLoops) {
  expect_loops_of_every_isa<DiagonalRun, DiagonalProblem>({{3, 1, 1, true, false},
                                                           {33, 5, 16, false, true},
                                                           {70, 17, 9, true, false},
                                                           {64, 32, 33, false, false}},
                                                          1e-12);
}

}  // namespace
}  // namespace lrnn::kernels
