#include "kernels/delta_product.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "base/random.h"
#include "kernels/dispatch.h"

// Every build of the kernel that this machine can run, straight through its own interface, against
// loops over the recurrence and its derivative in double.
namespace lrnn::kernels {
namespace {

struct Sizes {
  int64_t B, T, N, H, K, V;
  int64_t gates;  // per head and token: 0, 1 or K
};
using Values = std::vector<double>;

// Numbers that bfloat16 represents, so that all types compute on the same ones.
Values random_values(uint64_t seed, int64_t n, double low, double high) {
  Random random(seed, 0, 0);
  Values x(n);
  for (auto& value : x) {
    const float f = float(low + (high - low) * random.uniform());
    uint32_t bits;
    std::memcpy(&bits, &f, 4);
    bits &= 0xffff0000;
    float cut;
    std::memcpy(&cut, &bits, 4);
    value = cut;
  }
  return x;
}

struct Problem {
  Sizes z;
  double scale = 0.25;
  Values q, k, v, beta, log_gate, state, d_o, d_final;
  explicit Problem(const Sizes& sizes) : z(sizes) {
    const int64_t tokens = z.B * z.T * z.H, steps = tokens * z.N, states = z.B * z.H * z.K * z.V;
    const double unit = 1.7 / std::sqrt(double(z.K));  // keys of length about 1
    q = random_values(1, tokens * z.K, -unit, unit), k = random_values(2, steps * z.K, -unit, unit);
    v = random_values(3, steps * z.V, -1, 1), beta = random_values(4, steps, 0, 1.8);
    log_gate = random_values(5, tokens * z.gates, -0.3, 0), state = random_values(6, states, -1, 1);
    d_o = random_values(7, tokens * z.V, -1, 1), d_final = random_values(8, states, -1, 1);
  }
};

struct Results {
  Values o, final_state, dq, dk, dv, dbeta, dlog_gate, dstate;
  explicit Results(const Problem& p)
      : o(p.d_o.size()),
        final_state(p.state),
        dq(p.q.size()),
        dk(p.k.size()),
        dv(p.v.size()),
        dbeta(p.beta.size()),
        dlog_gate(p.log_gate.size()),
        dstate(p.d_final) {}
};

// One head of one sequence; S and dS are its rows of the states.
struct Loop {
  const Problem& p;
  Results& r;
  int64_t b, h;
  double *S, *dS;
  std::vector<Values> before = {};  // the state before every micro-step

  int64_t token(int64_t t) const { return (b * p.z.T + t) * p.z.H + h; }
  int64_t step(int64_t t, int64_t j) const { return ((b * p.z.T + t) * p.z.N + j) * p.z.H + h; }
  // Of element i of the state.
  int64_t gate_index(int64_t t, int64_t i) const {
    return token(t) * p.z.gates + (p.z.gates > 1 ? i / p.z.V : 0);
  }
  double gate(int64_t t, int64_t i) const {
    return p.z.gates ? std::exp(p.log_gate[gate_index(t, i)]) : 1;
  }
  double error(const Values& s, int64_t m, int64_t c) const {
    double e = p.v[m * p.z.V + c];
    for (int64_t i = 0; i < p.z.K; ++i) e -= s[i * p.z.V + c] * p.k[m * p.z.K + i];
    return e;
  }

  void forward() {
    const auto [B, T, N, H, K, V, gates] = p.z;
    for (int64_t t = 0; t < T; ++t) {
      for (int64_t i = 0; i < K * V; ++i) S[i] *= gate(t, i);
      for (int64_t j = 0; j < N; ++j) {
        const int64_t m = step(t, j);
        const Values s = before.emplace_back(S, S + K * V);
        for (int64_t c = 0; c < V; ++c)
          for (int64_t i = 0; i < K; ++i)
            S[i * V + c] += p.beta[m] * p.k[m * K + i] * error(s, m, c);
      }
      for (int64_t c = 0; c < V; ++c)
        for (int64_t i = 0; i < K; ++i)
          r.o[token(t) * V + c] += p.scale * S[i * V + c] * p.q[token(t) * K + i];
    }
  }

  void backward() {
    const auto [B, T, N, H, K, V, gates] = p.z;
    Values after(S, S + K * V);
    for (int64_t t = T - 1; t >= 0; --t) {
      for (int64_t i = 0; i < K; ++i)
        for (int64_t c = 0; c < V; ++c) {
          const double d = p.scale * p.d_o[token(t) * V + c];
          r.dq[token(t) * K + i] += after[i * V + c] * d;
          dS[i * V + c] += p.q[token(t) * K + i] * d;
        }
      for (int64_t j = N - 1; j >= 0; --j) {
        after = before[t * N + j];
        undo(after, step(t, j));
      }
      // `after` is now the state just behind the gate.
      for (int64_t i = 0; i < K * V; ++i) {
        if (gates) r.dlog_gate[gate_index(t, i)] += dS[i] * after[i];
        dS[i] *= gate(t, i);
        after[i] /= gate(t, i);
      }
    }
  }

  void undo(const Values& s, int64_t m) {
    const auto [B, T, N, H, K, V, gates] = p.z;
    for (int64_t c = 0; c < V; ++c) {
      const double e = error(s, m, c);
      double along = 0;  // of the gradient, along the key
      for (int64_t i = 0; i < K; ++i) along += dS[i * V + c] * p.k[m * K + i];
      const double de = p.beta[m] * along;
      r.dv[m * V + c] = de;
      r.dbeta[m] += along * e;
      for (int64_t i = 0; i < K; ++i) {
        r.dk[m * K + i] += p.beta[m] * dS[i * V + c] * e - s[i * V + c] * de;
        dS[i * V + c] -= p.k[m * K + i] * de;
      }
    }
  }
};

Results loops(const Problem& p) {
  Results r(p);
  for (int64_t b = 0; b < p.z.B; ++b)
    for (int64_t h = 0; h < p.z.H; ++h) {
      const int64_t at = (b * p.z.H + h) * p.z.K * p.z.V;
      Loop loop{p, r, b, h, &r.final_state[at], &r.dstate[at]};
      loop.forward(), loop.backward();
    }
  return r;
}

// Elements of a kernel's type, as bytes.
struct Array {
  Type type;
  std::vector<double> storage;
  Array(Type t, size_t n) : type(t), storage(n + 1) {}
  Array(Type t, const Values& x) : Array(t, x.size()) {
    for (size_t i = 0; i < x.size(); ++i) {
      const float f = float(x[i]);
      if (t == Type::kFloat64) storage[i] = x[i];
      if (t == Type::kFloat32) std::memcpy(bytes() + 4 * i, &f, 4);
      // The upper half of a float, on a little-endian machine its last two bytes.
      if (t == Type::kBFloat16)
        std::memcpy(bytes() + 2 * i, reinterpret_cast<const char*>(&f) + 2, 2);
    }
  }
  char* bytes() { return reinterpret_cast<char*>(storage.data()); }
  Values values(size_t n) {
    Values x(n);
    for (size_t i = 0; i < n; ++i) {
      float f = 0;
      if (type == Type::kFloat64) x[i] = storage[i];
      if (type == Type::kFloat32) std::memcpy(&f, bytes() + 4 * i, 4);
      if (type == Type::kBFloat16) std::memcpy(reinterpret_cast<char*>(&f) + 2, bytes() + 2 * i, 2);
      if (type != Type::kFloat64) x[i] = f;
    }
    return x;
  }
};

Results kernel(const Problem& p, Type type, int steps) {
  const auto& [B, T, N, H, K, V, gates] = p.z;
  const Type wide = type == Type::kFloat64 ? type : Type::kFloat32;
  Results r(p);
  Array q(type, p.q), k(type, p.k), v(type, p.v), d_o(type, p.d_o), o(type, r.o.size());
  Array beta(wide, p.beta), log_gate(wide, p.log_gate), state(wide, p.state);
  Array final_state(wide, p.state.size()), d_final(wide, p.d_final);
  Array error(wide, p.v.size()), states(wide, B * H * (T / delta_product_segment(N)) * K * V);
  const auto per_token = [&z = p.z](Array& x, int64_t D) {
    return Rows{x.bytes(), z.T * z.H * D, z.H * D, 0, D};
  };
  const auto per_step = [&z = p.z](Array& x, int64_t D) {
    return Rows{x.bytes(), z.T * z.N * z.H * D, z.N * z.H * D, z.H * D, D};
  };
  DeltaProductInputs in;
  in.type = type, in.scale = p.scale;
  in.B = B, in.T = T, in.N = N, in.H = H, in.K = K, in.V = V, in.S = B;
  in.q = per_token(q, K), in.k = per_step(k, K);
  in.beta = beta.bytes(), in.state = state.bytes();
  if (gates) in.log_gate = log_gate.bytes(), in.channels = gates > 1;
  DeltaProductForward f{
      in,   per_step(v, V), per_token(o, V), final_state.bytes(), error.bytes(), states.bytes(),
      steps};
  delta_product_forward(f, serial);

  Array dq(type, p.q.size()), dk(type, p.k.size()), dv(type, p.v.size());
  Array dbeta(wide, p.beta.size()), dlog_gate(wide, p.log_gate.size()), dS(wide, p.state.size());
  DeltaProductBackward g{in,
                         per_token(d_o, V),
                         d_final.bytes(),
                         error.bytes(),
                         states.bytes(),
                         per_token(dq, K),
                         per_step(dk, K),
                         per_step(dv, V),
                         dbeta.bytes(),
                         gates ? dlog_gate.bytes() : nullptr,
                         dS.bytes()};
  delta_product_backward(g, serial);
  r.o = o.values(r.o.size()), r.final_state = final_state.values(r.final_state.size());
  r.dq = dq.values(r.dq.size()), r.dk = dk.values(r.dk.size()), r.dv = dv.values(r.dv.size());
  r.dbeta = dbeta.values(r.dbeta.size()), r.dstate = dS.values(r.dstate.size());
  r.dlog_gate = dlog_gate.values(r.dlog_gate.size());
  return r;
}

void expect_close(const char* name, const Values& got, const Values& want, double limit) {
  ASSERT_EQ(got.size(), want.size()) << name;
  double error = 0, size = 1e-300;
  for (size_t i = 0; i < want.size(); ++i)
    error += (got[i] - want[i]) * (got[i] - want[i]), size += want[i] * want[i];
  EXPECT_TRUE(std::sqrt(error / size) <= limit) << name << ": " << std::sqrt(error / size);
}

// Wide results never pass through bfloat16; rounding to its 8 bits costs at most 2^-8 of a value.
void expect_loops(const Problem& p, const Results& want, Type type, int steps) {
  const Results got = kernel(p, type, steps);
  const double wide = type == Type::kFloat64 ? 1e-13 : 1e-5;
  const double narrow = type == Type::kBFloat16 ? 0x1p-8 : wide;
  expect_close("o", got.o, want.o, narrow);
  expect_close("state", got.final_state, want.final_state, wide);
  expect_close("dq", got.dq, want.dq, narrow);
  expect_close("dk", got.dk, want.dk, narrow);
  expect_close("dv", got.dv, want.dv, narrow);
  expect_close("dbeta", got.dbeta, want.dbeta, wide);
  if (p.z.gates) expect_close("dlog_gate", got.dlog_gate, want.dlog_gate, wide);
  expect_close("dstate", got.dstate, want.dstate, wide);
}

TEST(DeltaProductKernel, EveryInstructionSetEqualsTheLoops) {
  const Isa best = best_isa();
  for (const Sizes& z :
       {Sizes{2, 3, 1, 2, 1, 1, 0}, Sizes{1, 33, 2, 3, 7, 5, 1}, Sizes{2, 40, 1, 1, 16, 33, 1},
        Sizes{1, 20, 3, 2, 32, 64, 0}, Sizes{1, 300, 1, 1, 4, 17, 1}, Sizes{1, 5, 37, 1, 8, 8, 1},
        // A gate per channel.
        Sizes{2, 3, 1, 2, 2, 1, 2}, Sizes{1, 33, 2, 3, 7, 5, 7}, Sizes{2, 40, 1, 1, 16, 33, 16},
        Sizes{1, 20, 3, 2, 33, 64, 33}, Sizes{1, 300, 1, 1, 4, 17, 4},
        Sizes{1, 5, 37, 1, 8, 8, 8}}) {
    SCOPED_TRACE(testing::Message() << "T " << z.T << " N " << z.N << " K " << z.K << " V " << z.V
                                    << " gates " << z.gates);
    const Problem p(z);
    const Results want = loops(p);
    for (const Isa isa : kIsas) {
      if (!has_isa(isa)) continue;
      force_isa(isa);
      for (const Type type : {Type::kFloat64, Type::kFloat32, Type::kBFloat16})
        for (const int steps : {0, 1, 2}) {
          SCOPED_TRACE(testing::Message()
                       << name(isa) << " type " << int(type) << " steps " << steps);
          expect_loops(p, want, type, steps);
        }
    }
  }
  force_isa(best);
}

}  // namespace
}  // namespace lrnn::kernels
