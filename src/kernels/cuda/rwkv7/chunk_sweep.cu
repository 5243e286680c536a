#include "kernels/cuda/rwkv7/chunk.cuh"

// The walk from chunk to chunk, for the state forward and for its gradient backward. A block has a
// head and 64 values, a warp 16 of them: transposed, [values, keys], the state is accumulators and
// operands of its warp alone, and warps meet only over the matrices, which come two chunks ahead.
namespace lrnn::kernels::cuda::rwkv7 {
namespace {

constexpr int kThreads = 128, kStages = 3;

template <int kKeys> struct Stage {
  using Keys = TokenColumns<kKeys>;
  static constexpr int kKp = 0, kWe = kKp + Keys::kBytes, kQt = kWe + Keys::kBytes,
                       kKe = kQt + Keys::kBytes, kAt = kKe + Keys::kBytes,
                       kBp = kAt + PairRows::kBytes, kValues = kBp + PairRows::kBytes,
                       kDecay = kValues + ValueRows::kBytes, kBytes = kDecay + 4 * kKeys;
  unsigned char* base;
  __device__ __forceinline__ Keys rows(int at) const { return Keys(base + at); }
  __device__ __forceinline__ PairRows pairs(int at) const { return PairRows(base + at); }
  __device__ __forceinline__ ValueRows values() const { return ValueRows(base + kValues); }
  __device__ __forceinline__ const float* decay() const {
    return reinterpret_cast<const float*>(base + kDecay);
  }
};

template <int kKeys, bool kBack>
__global__ void __launch_bounds__(kThreads, 1) walk(const Sweep p, int64_t chunks, bool wide) {
  using At = Stage<kKeys>;
  using From = Work<kKeys>;
  extern __shared__ __align__(16) unsigned char memory[];
  const int lane = threadIdx.x % 32, g = lane / 4, c = lane % 4, column = threadIdx.x / 32 * 16;
  const uint32_t groups = uint32_t(groups_of(p)), head = blockIdx.x / groups,
                 group = blockIdx.x - head * groups;
  const int64_t b = head / uint32_t(p.H), h = head - b * p.H, v0 = int64_t(group) * kColumns;
  float S[kKeys / 8][4] = {};
  const auto each_of_state = [&](auto&& f) {
#pragma unroll
    for (int j = 0; j < kKeys / 8; ++j)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int64_t v = v0 + column + g + i / 2 * 8, k = 8 * j + 2 * c + i % 2;
        if (k < p.K && v < p.V) f(S[j][i], (int64_t(head) * p.K + k) * p.V + v);
      }
  };
  if (p.begin) each_of_state([&](float& x, int64_t e) { x = p.begin[e]; });
  constexpr int kEach = kBack ? From::kBackward : From::kForward;
  const unsigned char* const work = p.work + int64_t(head) * chunks * kEach;
  const uint16_t* const values_of_head = head_of(p.values, b, h);
  uint16_t* const out_of_head = head_of(p.out, b, h);
  const auto chunk_at = [&](int n) { return kBack ? int(chunks) - 1 - n : n; };
  const auto ask = [&](int n, int stage) {
    if (n < int(chunks)) {
      const At to{memory + stage * At::kBytes};
      const unsigned char* const from = work + int64_t(chunk_at(n)) * kEach;
      fetch_tokens<kThreads>(to.rows(At::kKp), from + From::kKp);
      fetch_tokens<kThreads>(to.rows(At::kWe), from + From::kWe);
      fetch_tokens<kThreads>(to.rows(At::kQt), from + From::kQt);
      if constexpr (!kBack) {
        fetch_tokens<kThreads>(to.rows(At::kKe), from + From::kKe);
        fetch_tokens<kThreads>(to.pairs(At::kAt), from + From::kAt);
        fetch_tokens<kThreads>(to.pairs(At::kBp), from + From::kBp);
      }
      if (threadIdx.x < kKeys / 4)
        copy_async(shared_address(to.base + At::kDecay) + threadIdx.x * 16,
                   from + From::kDecay + threadIdx.x * 16);
      fetch_values(to.values(), values_of_head, p.values.token, int64_t(chunk_at(n)) * kTokens, v0,
                   p, wide);
    }
    copy_commit();
  };
  ask(0, 0), ask(1, 1);
  int stage = 0;
  for (int n = 0; n < int(chunks); ++n) {
    copy_wait<1>();
    __syncthreads();
    ask(n + 2, stage == 0 ? 2 : stage - 1);
    const At in{memory + stage * At::kBytes};
    stage = stage == 2 ? 0 : stage + 1;
    const int64_t chunk = chunk_at(n);
    Fragment<2> s[kKeys / 16];
#pragma unroll
    for (int i = 0; i < kKeys / 16; ++i) s[i] = as_fragment<2>(S[2 * i], S[2 * i + 1]);
    if (p.states) {
      uint16_t* const to =
          p.states + ((int64_t(head) * chunks + chunk) * groups + group) * state_elements<kKeys>();
#pragma unroll
      for (int part = 0; part < 2; ++part)
#pragma unroll
        for (int half = 0; half < 2; ++half)
#pragma unroll
          for (int i = 0; i < kKeys / 16; i += 2)
            // By name, for the compiler made four stores of a word each of a plain one.
            __stcg(reinterpret_cast<uint4*>(to + (part * kColumns + column + g + 8 * half) * kKeys +
                                            c * (kKeys / 4) + 4 * i),
                   make_uint4(s[i].part[part][half], s[i].part[part][2 + half],
                              s[i + 1].part[part][half], s[i + 1].part[part][2 + half]));
    }
    // What is taken from the state: forward U = Kp S + Bp V, backward We G.
    const auto read = in.rows(kBack ? At::kWe : At::kKp), take = in.rows(kBack ? At::kKp : At::kWe),
               add = in.rows(kBack ? At::kQt : At::kKe);
    const auto values = in.values().a_columns(column, 0);
    float u[2][4] = {};
    const auto add_state = [&](float(&x)[2][4], const auto& rows) {
#pragma unroll
      for (int i = 0; i < kKeys / 16; i += 4) {
        Fragment<2> b[4];
#pragma unroll
        for (int m = 0; m < 4; ++m) b[m] = rows.b_columns(16 * (i + m), 0);
        add_products(x, s + i, b);
      }
    };
    add_state(u, read);
    if constexpr (!kBack) {
      multiply(u[0], u[1], values, in.pairs(At::kBp).b_columns(0, 0));
      float out[2][4] = {};
      add_state(out, in.rows(At::kQt));
      multiply(out[0], out[1], values, in.pairs(At::kAt).b_columns(0, 0));
      store_across(out, out_of_head, p.out.token, chunk * kTokens, v0 + column, p);
    }
#pragma unroll
    for (int j = 0; j < 2; ++j)
#pragma unroll
      for (int i = 0; i < 4; ++i) u[j][i] = -u[j][i];
    const auto taken = as_fragment<2>(u[0], u[1]);
#pragma unroll
    for (int j = 0; j < kKeys / 8; ++j) {
      const float2 by = *reinterpret_cast<const float2*>(in.decay() + 8 * j + 2 * c);
      S[j][0] *= by.x, S[j][1] *= by.y, S[j][2] *= by.x, S[j][3] *= by.y;
    }
#pragma unroll
    for (int i = 0; i < kKeys / 16; i += 4) {
      Fragment<2> b[4];
#pragma unroll
      for (int m = 0; m < 4; ++m) b[m] = add.b_rows(0, 16 * (i + m));
      add_to_each(S + 2 * i, values, b);
#pragma unroll
      for (int m = 0; m < 4; ++m) b[m] = take.b_rows(0, 16 * (i + m));
      add_to_each(S + 2 * i, taken, b);
    }
  }
  if (p.end) each_of_state([&](float& x, int64_t e) { p.end[e] = x; });
}

}  // namespace

size_t sweep_bytes(const DiagonalInputs& p) {
  size_t bytes = 0;
  with_keys(p, [&](auto keys) { bytes = kStages * Stage<decltype(keys)::value>::kBytes; });
  return bytes;
}

void sweep(const Sweep& p, bool backward, void* stream) {
  const size_t bytes = sweep_bytes(p);
  with_keys(p, [&](auto keys) {
    constexpr int kKeys = decltype(keys)::value;
    auto* const kernel = backward ? walk<kKeys, true> : walk<kKeys, false>;
    allow_shared(kernel, bytes);
    kernel<<<blocks_of(p.B * p.H * groups_of(p)), kThreads, bytes,
             static_cast<cudaStream_t>(stream)>>>(p, chunks_of(p), lies_on_packs(p.values, p.type));
  });
  check_launch("rwkv7");
}

}  // namespace lrnn::kernels::cuda::rwkv7

namespace lrnn::kernels::cuda {

int64_t rwkv7_chunk_states(const DiagonalInputs& p) {
  int64_t bytes = 0;
  rwkv7::with_keys(p, [&](auto keys) {
    bytes = p.B * p.H * rwkv7::chunks_of(p) * rwkv7::groups_of(p) *
            rwkv7::state_elements<decltype(keys)::value>() * 2;
  });
  return bytes;
}

void rwkv7_chunk_forward(const DiagonalForward& p, void* work, void* stream) {
  rwkv7::prepare(p, false, work, stream);
  rwkv7::Sweep to{p};
  to.values = p.v, to.out = p.o;
  to.begin = static_cast<const float*>(p.state), to.end = static_cast<float*>(p.final_state);
  to.work = static_cast<const unsigned char*>(work), to.states = static_cast<uint16_t*>(p.states);
  rwkv7::sweep(to, false, stream);
}

}  // namespace lrnn::kernels::cuda
