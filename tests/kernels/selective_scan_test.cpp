#include "kernels/selective_scan.h"

#include "tests/kernels/loops.h"

// The selective scan against loops, without torch.
namespace lrnn::kernels {
namespace {

struct ScanProblem {
  int64_t T, D, N;
  bool negative;
  // u, delta, A, B, C, skip, z, bias, state
  std::vector<Values> in;
  Values dy, d_final;

  ScanProblem(int64_t T_, int64_t D_, int64_t N_, bool negative_)
      : T(T_), D(D_), N(N_), negative(negative_) {
    const std::vector<int64_t> sizes = {T * D, T * D, D * N, T * N, T * N, D, T * D, D, D * N};
    for (size_t i = 0; i < sizes.size(); ++i)
      in.push_back(i == 2 ? draw_values(i, sizes[i], -2, 0) : draw_values(i, sizes[i], -1, 1));
    dy = draw_values(20, T * D, -1, 1), d_final = draw_values(21, D * N, -1, 1);
  }
  bool reads(size_t) const { return true; }
  friend std::ostream& operator<<(std::ostream& out, const ScanProblem& p) {
    return out << "T " << p.T << " D " << p.D << " N " << p.N;
  }

  // y and the final state, and what they weigh.
  double loss(const std::vector<Values>& x, Values* y_out = nullptr,
              Values* state_out = nullptr) const {
    Values h = x[8], y(T * D);
    double total = 0;
    for (int64_t t = 0; t < T; ++t)
      for (int64_t d = 0; d < D; ++d) {
        const double u = x[0][t * D + d], dt = std::log1p(std::exp(x[1][t * D + d] + x[7][d]));
        double sum = x[5][d] * u;
        for (int64_t n = 0; n < N; ++n) {
          const double e = std::exp(dt * x[2][d * N + n]);
          double& s = h[d * N + n];
          s = (negative ? 2 * e - 1 : e) * s + dt * u * x[3][t * N + n];
          sum += s * x[4][t * N + n];
        }
        const double z = x[6][t * D + d];
        y[t * D + d] = sum * z / (1 + std::exp(-z));
        total += y[t * D + d] * dy[t * D + d];
      }
    for (int64_t i = 0; i < D * N; ++i) total += h[i] * d_final[i];
    if (y_out) *y_out = y;
    if (state_out) *state_out = h;
    return total;
  }
};

template <class F> std::vector<F> as(const Values& x) { return {x.begin(), x.end()}; }

template <class F> struct ScanRun {
  std::vector<std::vector<F>> in, d;  // gradients in the order of the inputs
  std::vector<F> out, state;

  explicit ScanRun(const ScanProblem& p) : out(p.T * p.D), state(p.D * p.N) {
    for (const auto& x : p.in) in.push_back(as<F>(x)), d.emplace_back(x.size());
    const Type type = sizeof(F) == 8 ? Type::kFloat64 : Type::kFloat32;
    const auto rows = [&](std::vector<F>& x, int64_t n) {
      return Rows{x.data(), p.T * n, n, 0, 0};
    };
    SelectiveScanForward f;
    f.type = type, f.batch = f.S = 1, f.T = p.T, f.D = p.D, f.N = p.N, f.negative = p.negative;
    f.u = rows(in[0], p.D), f.delta = rows(in[1], p.D), f.A = in[2].data();
    f.B = rows(in[3], p.N), f.C = rows(in[4], p.N), f.skip = in[5].data();
    f.z = rows(in[6], p.D), f.delta_bias = in[7].data(), f.state = in[8].data();
    std::vector<F> states(p.T / kSelectiveScanChunk * p.N * p.D + 1);
    f.y = rows(out, p.D), f.final_state = state.data(), f.states = states.data();
    selective_scan_forward(f, serial);

    SelectiveScanBackward g;
    static_cast<SelectiveScanInputs&>(g) = f;
    auto dy = as<F>(p.dy), d_final = as<F>(p.d_final);
    const int64_t groups = selective_scan_groups(p.D, type);
    std::vector<F> dB(groups * p.T * p.N), dC(groups * p.T * p.N);
    g.dy = rows(dy, p.D), g.d_final_state = d_final.data(), g.states = states.data();
    g.du = rows(d[0], p.D), g.ddelta = rows(d[1], p.D), g.dA = d[2].data();
    g.dB = dB.data(), g.dC = dC.data(), g.dskip = d[5].data(), g.dz = rows(d[6], p.D);
    g.dbias = d[7].data(), g.dstate = d[8].data();
    selective_scan_backward(g, serial);
    for (int64_t group = 0; group < groups; ++group)
      for (int64_t i = 0; i < p.T * p.N; ++i) {
        d[3][i] += dB[group * p.T * p.N + i];
        d[4][i] += dC[group * p.T * p.N + i];
      }
  }
};

TEST(SelectiveScanKernel, EveryInstructionSetEqualsTheLoops) {
  expect_loops_of_every_isa<ScanRun, ScanProblem>(
      {{3, 1, 1, false}, {33, 5, 16, true}, {70, 67, 3, true}, {64, 32, 17, false}}, 1e-13);
}

}  // namespace
}  // namespace lrnn::kernels
