#include "kernels/cuda/delta_product/hopper_fused_prepare.cuh"

// The forward pass in one kernel, for K = V = 128, bfloat16 operands and where nothing is kept for
// backward. A block follows one head of one sequence:
//
//   D = T diag(beta) (V - diag(a) K S),  O = scale diag(a) Q S + P D,  S' = a_C S + (diag(r) K)^T D
//
// Two warp groups have the state in registers and walk from chunk to chunk; a third makes T and P
// of the next chunk meanwhile, in shared memory alone; the warps of the fourth bring keys, scalars,
// queries and values.
namespace lrnn::kernels::cuda {
namespace {

using namespace fused;

struct Maps {
  CUtensorMap k, q, v, o;
  int rows;  // in a box of o
};

// ------------------------------------------------------------------------------------ fetching
template <int kRows, bool kGates> struct Fetcher {
  static constexpr bool kOne = kRows == kChunk;
  const Sequence& of;
  const Barriers& barriers;
  const Maps& maps;
  unsigned char* memory;
  const int lane = threadIdx.x % 32;

  __device__ __forceinline__ uint32_t base() const { return shared_address(memory); }
  __device__ __forceinline__ void fetch() const {
    switch (threadIdx.x / 32 % 4) {
      case kRowWarp: return fetch_rows();
      case kScalarWarp: return fetch_scalars();
      case kValueWarp: return fetch_values();
      default: return send_results();
    }
  }

  // Both tiles of 64 channels.
  __device__ __forceinline__ void bring_rows(uint32_t barrier, uint32_t to, const CUtensorMap& map,
                                             int rows, int first, int head) const {
    if (lane != 0) return;
    barrier_expect(barrier, 2 * rows * 128);
    for (int tile = 0; tile < 2; ++tile)
      bring_box(barrier, to + tile * kTileBytes, map, tile * 64, first, head, int(of.span.b));
  }
  // Rows of a packed sequence's last chunk: those behind it are another's, and must be zeros here.
  template <class R, class Ring>
  __device__ __forceinline__ void copy_rows(const Ring& ring, int n, uint32_t to,
                                            const R& rows) const {
    const uint16_t* const from =
        static_cast<const uint16_t*>(rows.data) + row_at(rows, of.span.b, of.span.t0, 0, of.h);
#pragma unroll 1
    for (int at = lane; at < kChunk * 16; at += 32) {
      const int row = at / 16, piece = at % 16;
      const bool inside = row < of.count(n);
      copy_async(to + piece / 8 * kTileBytes + swizzled(row, piece % 8),
                 inside ? from + (int64_t(n) * kChunk + row) * rows.step + piece * 8 : from,
                 inside);
    }
    copy_commit();
    copy_wait<0>();
    ring.filled(n);
  }
  __device__ __forceinline__ bool shares_box(int n) const {
    return of.p.cu_seqlens && of.count(n) < kChunk;
  }
  // Keys and queries. Whose the rows behind those of the chunk's queries are does not matter:
  // nobody looks at what they read.
  __device__ __forceinline__ void fetch_rows() const {
    for (int n = 0; n < of.chunks; ++n) {
      const uint32_t k = base() + Places::k + barriers.keys.slot(n) * 2 * kTileBytes,
                     q = base() + Places::q + barriers.queries.slot(n) * 2 * kTileBytes;
      barriers.keys.wait_free(n);
      if (shares_box(n))
        copy_rows(barriers.keys, n, k, of.p.k);
      else
        bring_rows(barriers.keys.filling(n), k, maps.k, kChunk, of.first_step + n * kChunk,
                   of.key_head(of.p.k));
      const Reading<kOne> reading(of.p, n * kChunk, of.count(n));
      barriers.queries.wait_free(n);
      bring_rows(barriers.queries.filling(n), q, maps.q, kRows, int(of.span.t0) + reading.token,
                 of.key_head(of.p.q));
    }
  }
  __device__ __forceinline__ void fetch_values() const {
    for (int n = 0; n < of.chunks; ++n) {
      const uint32_t to = base() + Places::v + barriers.values.slot(n) * 2 * kTileBytes;
      barriers.values.wait_free(n);
      if (shares_box(n))
        copy_rows(barriers.values, n, to, of.p.v);
      else
        bring_rows(barriers.values.filling(n), to, maps.v, kChunk, of.first_step + n * kChunk,
                   int(of.h));
    }
  }
  // What both walkers have read of a chunk.
  __device__ __forceinline__ void send_results() const {
    for (int n = 0; n < of.chunks; ++n) {
      const Reading<kOne> reading(of.p, n * kChunk, of.count(n));
      const int token = int(of.span.t0) + reading.token;
      // The box, or the rest of it lies outside.
      const bool whole = reading.rows == maps.rows || (kOne && !of.p.cu_seqlens);
#pragma unroll 1
      for (int group = 0; group < kWalkers; ++group) {
        barriers.results(group).wait_filled(n);
        const uint32_t from = base() + Places::o + group * kTileBytes;
        if (!whole) {
          store_rows(group, token, reading.rows);
        } else if (lane == 0) {
          send_box(maps.o, from, group * 64, token, int(of.h), int(of.span.b));
          send_commit();
          send_wait<0>();
        }
        barriers.results(group).free(n);
      }
    }
  }
  __device__ __forceinline__ void store_rows(int group, int token, int rows) const {
    uint16_t* const to = static_cast<uint16_t*>(of.p.o.data) +
                         row_at(of.p.o, of.span.b, token, 0, of.h) + group * 64;
    const unsigned char* const from = memory + Places::o + group * kTileBytes;
#pragma unroll 1
    for (int at = lane; at < rows * 8; at += 32)
      *reinterpret_cast<uint4*>(to + at / 8 * of.p.o.token + at % 8 * 8) =
          *reinterpret_cast<const uint4*>(from + swizzled(at / 8, at % 8));
  }

  // beta and the logarithm of the gate of two micro-steps.
  __device__ __forceinline__ Pair scalars_of(int n) const {
    Pair x{};
#pragma unroll
    for (int u = 0; u < 2; ++u) {
      const int m = n * kChunk + 2 * lane + u;
      if (m >= of.steps) continue;
      const int t = kOne ? m : int(uint32_t(m) / uint32_t(of.p.N)), j = m - t * int(of.p.N);
      const int64_t token = of.span.b * of.p.T + of.span.t0 + t;
      x.beta[u] =
          static_cast<const float*>(of.p.beta)[(token * of.p.N + (kOne ? 0 : j)) * of.p.H + of.h];
      if (x.beta[u] == 0) x.beta[u] = kSmallestBeta;
      if (kGates && (kOne || j == 0))
        x.log[u] = static_cast<const float*>(of.p.log_gate)[token * of.p.H + of.h];
    }
    return x;
  }
  __device__ __forceinline__ void fetch_scalars() const {
    Pair next = scalars_of(0);
    for (int n = 0; n < of.chunks; ++n) {
      const Pair x = next;
      if (n + 1 < of.chunks) next = scalars_of(n + 1);
      const Reading<kOne> reading(of.p, n * kChunk, of.count(n));
      float* const vectors = Places::vectors_of(memory, n);
      barriers.keys.wait_free(n);
      reinterpret_cast<float2*>(vectors + kBeta * kChunk)[lane] = make_float2(x.beta[0], x.beta[1]);
      if constexpr (kGates)
        put_decays(vectors, vectors + kLog * kChunk, vectors + kLeft * kChunk, x, float(of.p.scale),
                   [&](int r) { return reading.last(r); });
      barriers.keys.filled(n);
    }
  }
};

// ------------------------------------------------------------------------------------- walking
template <int kRows, bool kGates> struct Walker {
  using State = float[16][4];
  using Square = float[8][4];
  using Reads = float[kRows / 8][4];
  using Results = Fragment<1>[kRows / 16];  // rows of O, rounded
  const Sequence& of;
  const Barriers& barriers;
  unsigned char* memory;
  const int group = threadIdx.x / 128, warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;

  __device__ __forceinline__ uint32_t base() const { return shared_address(memory); }
  __device__ __forceinline__ uint32_t key(int n) const {
    return base() + Places::k + Ring<kKeySlots>::slot(n) * 2 * kTileBytes;
  }
  __device__ __forceinline__ uint32_t query(int n) const {
    return base() + Places::q + Ring<kQuerySlots>::slot(n) * 2 * kTileBytes;
  }
  __device__ __forceinline__ uint32_t square(int n) const {
    return base() + Places::T + Ring<kSquareSlots>::slot(n) * kTileBytes;
  }

  // Columns of K S become those of diag(beta) (V - diag(a) K S), as an operand, 16 at a time.
  __device__ __forceinline__ void subtract(Fragment<1> (&r)[4], const Square& R, int n) const {
    const float* const vectors = Places::vectors_of(memory, n) + 2 * (lane % 4);
    const int row = lane % 8 + lane / 16 * 8;
    const uint32_t values = base() + Places::v +
                            (Ring<kValueSlots>::slot(n) * 2 + group) * kTileBytes +
                            swizzled(row, 2 * warp + lane / 8 % 2);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      uint32_t v[4];
      ldmatrix_transposed(v, values + i * 16 * 128);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float(&x)[4] = R[2 * i + half];
        const float* const at = vectors + (2 * i + half) * 8;
        const float2 beta = *reinterpret_cast<const float2*>(at + kBeta * kChunk);
        float2 before = make_float2(1, 1);
        if constexpr (kGates) before = *reinterpret_cast<const float2*>(at + kBefore * kChunk);
#pragma unroll
        for (int u = 0; u < 2; ++u)
          r[i].part[0][2 * half + u] =
              pack(beta.x * (low_of(v[2 * half + u]) - before.x * x[2 * u]),
                   beta.y * (high_of(v[2 * half + u]) - before.y * x[2 * u + 1]));
      }
    }
  }
  // Rows of O on their way out.
  __device__ __forceinline__ void put_results(const Results& results, int n) const {
    const int row = lane % 8 + lane / 16 * 8;
    const uint32_t at =
        base() + Places::o + group * kTileBytes + swizzled(row, 2 * warp + lane / 8 % 2);
    barriers.results(group).wait_free(n);
#pragma unroll
    for (int t = 0; t < kRows / 16; ++t) stmatrix_transposed(at + t * 16 * 128, results[t].part[0]);
    barriers.results(group).filled(n);
  }

  // A chunk; `a` is S as an operand. O leaves while the next chunk's first product runs.
  __device__ __forceinline__ void walk(State& S, Fragment<1> (&a)[8], Results& results,
                                       int n) const {
    const float* const vectors = Places::vectors_of(memory, n);
    Square R, D;
    Reads O;
    Fragment<1> r[4], d[4];
    barriers.keys.wait_filled(n);
    barriers.queries.wait_filled(n);
    wgmma::fence();
    times_rows<true, kTileBytes>(R, a, key(n));
    wgmma::commit();
    put_results(results, n - 1);
    wgmma::fence();
    times_rows<true, kTileBytes>(O, a, query(n));
    wgmma::commit();
    barriers.values.wait_filled(n);
    wgmma::wait<1>();
    wgmma::hold(R);
    wgmma::wait<0>();
    wgmma::hold(O);
    subtract(r, R, n);
    barriers.values.free(n);
    barriers.squares.wait_filled(n);
    wgmma::fence();
    times_rows<true, kTileBytes>(D, r, square(n));
    wgmma::commit();
    barriers.queries.free(n);
    if constexpr (kGates) {
      scale(S, vectors[kBefore * kChunk + kChunk - 1]);
      scale_columns(O, vectors + kRead * kChunk);
    } else {
      scale(O, float(of.p.scale));
    }
    wgmma::hold(O);
    wgmma::wait<0>();
    wgmma::hold(D);
    as_fragments(d, D);
    if constexpr (kGates) {
      Fragment<1> e[4];
      scale_columns(D, vectors + kAfter * kChunk);
      as_fragments(e, D);
      wgmma::fence();
      times_columns<false>(S, e, key(n), kTileBytes);
    } else {
      wgmma::fence();
      times_columns<false>(S, d, key(n), kTileBytes);
    }
    wgmma::commit();
    times_rows<false, kTileBytes>(O, d, square(n) + kSquareSlots * kTileBytes);
    wgmma::commit();
    wgmma::wait<1>();
    wgmma::hold(S);
    barriers.keys.free(n);
    as_fragments(a, S);
    wgmma::wait<0>();
    wgmma::hold(O);
    barriers.squares.free(n);
    as_fragments(results, O);
  }
  __device__ __forceinline__ void walk_all() const {
    State S;
    Results results = {};
    Fragment<1> a[8];
    const int64_t matrix = of.p.K * of.p.V, at = (of.s * of.p.H + of.h) * matrix,
                  v = group * 64 + warp * 16 + lane / 4;
    const float* const initial = static_cast<const float*>(of.p.state);
    read_state(S, initial ? initial + at : nullptr, of.p.K, of.p.V, v);
    as_fragments(a, S);
    for (int n = 0; n < of.chunks; ++n) walk(S, a, results, n);
    put_results(results, of.chunks - 1);
    write_state(S, static_cast<float*>(of.p.final_state) + at, of.p.K, of.p.V, v);
  }
};

template <int kRows, bool kGates>
__global__ void __launch_bounds__(kThreads, 1)
    hopper_fused_forward(const __grid_constant__ DeltaProductForward p,
                         const __grid_constant__ Maps maps) {
  extern __shared__ __align__(1024) unsigned char memory[];
  const Barriers barriers(shared_address(memory) + Places::barriers);
  const Sequence of{p};
  const int group = threadIdx.x / 128;
  if (group == kFetcher) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(kFetcherRegisters));
    Fetcher<kRows, kGates>{of, barriers, maps, memory}.fetch();
  } else if (group == kPreparer) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(kPreparerRegisters));
    Preparer<kRows, kGates>{of, barriers, memory}.prepare_all();
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(kWalkerRegisters));
    Walker<kRows, kGates>{of, barriers, memory}.walk_all();
  }
}

template <int kRows, bool kGates>
void launch(const DeltaProductForward& p, const Maps& maps, cudaStream_t stream) {
  auto* kernel = hopper_fused_forward<kRows, kGates>;
  allow_shared(kernel, Places::all);
  kernel<<<unsigned(p.S * p.H), kThreads, Places::all, stream>>>(p, maps);
  check_launch("delta_product");
}

template <class R>
MappedRows mapped(const DeltaProductForward& p, const R& x, bool tokens, int64_t heads) {
  return {x.data, 128,    tokens ? p.T : p.T * p.N, heads, p.B, tokens ? x.token : x.step,
          x.head, x.batch};
}
// How many heads share the rows of one.
int64_t key_heads(const DeltaProductForward& p, const SharedRows& x) {
  const int64_t group = ((int64_t(1) << 31) + x.inverse - 1) / x.inverse;
  return (p.H + group - 1) / group;
}

}  // namespace

bool hopper_fused_forward(const DeltaProductForward& p, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  if (p.S * p.H == 0) return true;
  Maps maps;
  const int rows = p.N == 1 ? 64 : 32;
  maps.rows = p.N == 1 ? 64 : p.N <= 64 && 64 % p.N == 0 ? int(64 / p.N) : 1;
  if (!make_map(maps.k, mapped(p, p.k, false, key_heads(p, p.k)), kChunk) ||
      !make_map(maps.q, mapped(p, p.q, true, key_heads(p, p.q)), rows) ||
      !make_map(maps.v, mapped(p, p.v, false, p.H), kChunk) ||
      !make_map(maps.o, mapped(p, p.o, true, p.H), maps.rows))
    return false;
  if (p.log_gate)
    rows == 64 ? launch<64, true>(p, maps, on) : launch<32, true>(p, maps, on);
  else
    rows == 64 ? launch<64, false>(p, maps, on) : launch<32, false>(p, maps, on);
  return true;
}

}  // namespace lrnn::kernels::cuda
