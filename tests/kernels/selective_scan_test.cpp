#include "kernels/selective_scan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"
#include "kernels/dispatch.h"

// Every build of the kernel that this machine can run, straight through its own interface, against
// loops over the recurrence in double. The gradients are those of finite differences of the loops.
namespace lrnn::kernels {
namespace {

using Values = std::vector<double>;

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
      in.push_back(i == 2 ? random(i, sizes[i], -2, 0) : random(i, sizes[i], -1, 1));
    dy = random(20, T * D, -1, 1), d_final = random(21, D * N, -1, 1);
  }
  static Values random(uint64_t seed, int64_t n, double low, double high) {
    Random random(seed, 0, 0);
    Values x(n);
    for (auto& value : x) value = low + (high - low) * random.uniform();
    return x;
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
  std::vector<F> y, state;

  explicit ScanRun(const ScanProblem& p) : y(p.T * p.D), state(p.D * p.N) {
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
    f.y = rows(y, p.D), f.final_state = state.data(), f.states = states.data();
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

template <class F> double off(const std::vector<F>& got, const Values& want) {
  double error = 0, size = 1e-300;
  for (size_t i = 0; i < want.size(); ++i)
    error += (got[i] - want[i]) * (got[i] - want[i]), size += want[i] * want[i];
  return std::sqrt(error / size);
}

template <class F> void expect_scan_loops(const ScanProblem& p) {
  const ScanRun<F> run(p);
  Values y, state;
  p.loss(p.in, &y, &state);
  const double limit = sizeof(F) == 8 ? 1e-13 : 1e-5;
  EXPECT_TRUE(off(run.y, y) <= limit) << "y " << off(run.y, y);
  EXPECT_TRUE(off(run.state, state) <= limit) << "state " << off(run.state, state);
  for (size_t i = 0; i < p.in.size(); ++i)
    for (uint64_t trial = 0; trial < 2; ++trial) {
      // Along a random direction, which checks every element at once.
      const Values direction = ScanProblem::random(50 + trial, int64_t(p.in[i].size()), -1, 1);
      auto plus = p.in, minus = p.in;
      double want = 0;
      for (size_t j = 0; j < direction.size(); ++j) {
        plus[i][j] += 1e-5 * direction[j], minus[i][j] -= 1e-5 * direction[j];
        want += double(run.d[i][j]) * direction[j];
      }
      const double slope = (p.loss(plus) - p.loss(minus)) / 2e-5;
      EXPECT_NEAR(slope, want, (sizeof(F) == 8 ? 1e-6 : 1e-3) * (1 + std::abs(slope)))
          << "input " << i;
    }
}

TEST(SelectiveScanKernel, EveryInstructionSetEqualsTheLoops) {
  const Isa best = best_isa();
  for (const auto& p : {ScanProblem(3, 1, 1, false), ScanProblem(33, 5, 16, true),
                        ScanProblem(70, 67, 3, true), ScanProblem(64, 32, 17, false)})
    for (const Isa isa : kIsas) {
      if (!has_isa(isa)) continue;
      force_isa(isa);
      SCOPED_TRACE(testing::Message() << name(isa) << " T " << p.T << " D " << p.D << " N " << p.N);
      expect_scan_loops<double>(p);
      expect_scan_loops<float>(p);
    }
  force_isa(best);
}

}  // namespace
}  // namespace lrnn::kernels
