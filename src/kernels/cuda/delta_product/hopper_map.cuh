#pragma once
#include "kernels/cuda/delta_product/hopper.cuh"

// The map S -> M S + B of every segment but the first and the last, whose one end is known: columns
// of M from the unit matrix, of B from zero (of the first segment from its true state). Keys do not
// depend on the state, so neither does W, and what follows the state is two products long:
//
//   W = -T diag(beta a) K,  D = (T diag(beta)) V + W S,  S' = a_C S + (diag(r) K)^T D
//
// One or two warp groups have 64 columns of the state each. Another fetches and makes W of the next
// chunk meanwhile.
namespace lrnn::kernels::cuda::maps {

constexpr int kSlots = 4, kReady = 2;  // of chunks, of W
constexpr int kWalkerRegisters = 192, kPreparerRegisters = 120;

template <int KT> struct Places {  // bytes
  static constexpr int k = 0, T = KT / 64 * kTileBytes, v = T + kTileBytes,
                       vectors = v + 2 * kTileBytes,
                       slot = (vectors + kVectorCount * kChunk * 4 + 1023) / 1024 * 1024,
                       W = kSlots * slot, W_each = KT / 64 * kTileBytes,
                       barriers = W + kReady * W_each, all = barriers + kSlots * 24 + 8 * 4;
  static_assert(all <= kMostShared);
};

// A chunk has come, its W is made, it is no longer needed. n counts chunks of this block.
class Meeting {
 public:
  __device__ Meeting(uint32_t at, int groups) : at_(at) {
    if (threadIdx.x == 0) {
      for (int i = 0; i < kSlots; ++i) {
        barrier_init(at + i * 24, 1);
        barrier_init(at + i * 24 + 8, 128);
        barrier_init(at + i * 24 + 16, groups * 128);
      }
      wgmma::publish();
    }
    __syncthreads();
  }
  __device__ uint32_t coming(int n) const { return at_ + n % kSlots * 24; }
  __device__ void wait_come(int n) const { barrier_wait(coming(n), n / kSlots % 2); }
  __device__ void made(int n) const { barrier_arrive(coming(n) + 8); }
  __device__ void wait_made(int n) const { barrier_wait(coming(n) + 8, n / kSlots % 2); }
  __device__ void free(int n) const { barrier_arrive(coming(n) + 16); }
  __device__ void wait_free(int n) const {
    if (n >= 0) barrier_wait(coming(n) + 16, n / kSlots % 2);
  }

 private:
  uint32_t at_;
};

template <int KT, bool kGate> struct Maps {
  using P = Places<KT>;
  const DeltaProductForward& p;
  const ChunkWork& w;
  const Stretch& stretch;
  const Meeting& meeting;
  unsigned char* memory;
  int columns;
  int64_t v0;  // of B
  const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32, rank = threadIdx.x % 128;

  __device__ __forceinline__ uint32_t slot(int n) const {
    return shared_address(memory) + n % kSlots * P::slot;
  }
  __device__ __forceinline__ const float* vectors(int n) const {
    return reinterpret_cast<const float*>(memory + n % kSlots * P::slot + P::vectors);
  }
  __device__ __forceinline__ uint32_t W(int n) const {
    return shared_address(memory) + P::W + n % kReady * P::W_each;
  }

  // ------------------------------------------------------------------------------ the preparer
  // Chunks from `begin` on, the n0-th of this block and those after it.
  template <bool kUnit> __device__ __forceinline__ void prepare(int begin, int n0) const {
    const int end = n0 + stretch.end - begin;
    const Span span = span_of(p, stretch.s);
    const int64_t slot0 = first_slot(p, stretch.s, kChunk);
    const uint16_t* const k_rows =
        static_cast<const uint16_t*>(p.k.data) + row_at(p.k, span.b, span.t0, 0, stretch.h);
    const uint16_t* const v_rows =
        static_cast<const uint16_t*>(p.v.data) + row_at(p.v, span.b, span.t0, 0, stretch.h) + v0;
    // Only the last segment has a chunk that is not whole, and it has no map.
    const auto fetch = [&](int n) {
      if (n < end) {
        const int chunk = begin + n - n0;
        const int64_t first = int64_t(chunk) * kChunk, item = (slot0 + chunk) * p.H + stretch.h;
        const uint32_t to = slot(n);
        if (rank == 0) {
          barrier_expect(meeting.coming(n), kTileBytes + kVectorCount * kChunk * 4);
          bring(meeting.coming(n), to + P::T, w.T + item * kChunk * kChunk, kTileBytes);
          bring(meeting.coming(n), to + P::vectors, w.vectors + item * kVectorCount * kChunk,
                kVectorCount * kChunk * 4);
        }
        fetch_tiles<KT, kChunk, 128>(rank, to + P::k, k_rows + first * p.k.step, p.k.step, kChunk,
                                     int(p.K));
        if constexpr (!kUnit) {
          if (columns == 128)
            fetch_tiles<128, kChunk, 128>(rank, to + P::v, v_rows + first * p.v.step, p.v.step,
                                          kChunk, 128);
          else
            fetch_tiles<64, kChunk, 128>(rank, to + P::v, v_rows + first * p.v.step, p.v.step,
                                         kChunk, 64);
        }
      }
      copy_commit();
    };
    for (int n = n0; n < n0 + 2; ++n) meeting.wait_free(n - kSlots), fetch(n);
    for (int n = n0; n < end; ++n) {
      meeting.wait_free(n - 2);
      fetch(n + 2);
      copy_wait<2>();
      meeting.wait_come(n);
      wgmma::publish();
      meet_group();
      make_W<kUnit>(n);
      wgmma::publish();
      meeting.made(n);
    }
  }
  // This warp's 16 rows. T diag(beta) takes the place of T.
  template <bool kUnit> __device__ __forceinline__ void make_W(int n) const {
    const uint32_t T = slot(n) + P::T;
    const float* const by = vectors(n) + 2 * (lane % 4);
    const int row = warp * 16 + lane % 16;
    Fragment<1> t[4], left[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const uint32_t at = T + swizzled(row, 2 * j + lane / 16);
      ldmatrix(t[j].part[0], at);
      const auto pair = [&](int which, int i) {
        return *reinterpret_cast<const float2*>(by + which * kChunk + j * 16 + i);
      };
      float2 x = pair(kBeta, 0), y = pair(kBeta, 8);
      if constexpr (!kUnit) stmatrix(at, times_columns<1>(t[j], x, y).part[0]);
      if constexpr (kGate) {
        const float2 before = pair(kBefore, 0), behind = pair(kBefore, 8);
        x.x *= before.x, x.y *= before.y, y.x *= behind.x, y.y *= behind.y;
      }
      left[j] = times_columns<1>(t[j], make_float2(-x.x, -x.y), make_float2(-y.x, -y.y));
    }
    float acc[KT / 8][4];
    wgmma::fence();
    times_columns<true>(acc, left, slot(n) + P::k, kTileBytes);
    wgmma::commit();
    wgmma::wait<0>();
    wgmma::hold(acc);
#pragma unroll
    for (int k = 0; k < KT / 16; ++k)
      stmatrix(W(n) + k / 4 * kTileBytes + swizzled(row, k % 4 * 2 + lane / 16),
               as_fragment<1>(acc[2 * k], acc[2 * k + 1]).part[0]);
  }

  // ------------------------------------------------------------------------------- the walkers
  template <bool kUnit>
  __device__ __forceinline__ void walk(float (&S)[KT / 8][4], int begin, int n0) const {
    const int end = n0 + stretch.end - begin;
    const uint32_t group = threadIdx.x / 128 * kTileBytes;
#pragma unroll 1
    for (int n = n0; n < end; ++n) {
      float D[8][4];
      Fragment<1> a[KT / 16], d[4], v[4];
      as_fragments(a, S);
      meeting.wait_made(n);
      if constexpr (!kUnit) {
        const uint32_t values =
            slot(n) + P::v + group + swizzled(lane % 8 + lane / 16 * 8, 2 * warp + lane / 8 % 2);
#pragma unroll
        for (int j = 0; j < 4; ++j) ldmatrix_transposed(v[j].part[0], values + j * 16 * 128);
      }
      wgmma::fence();
      times_rows<true, kTileBytes>(D, a, W(n));
      if constexpr (!kUnit) times_rows<false, kTileBytes>(D, v, slot(n) + P::T);
      wgmma::commit();
      if constexpr (kGate) scale(S, vectors(n)[kBefore * kChunk + kChunk - 1]);
      wgmma::wait<0>();
      wgmma::hold(D);
      if constexpr (kGate) scale_columns(D, vectors(n) + kAfter * kChunk);
      as_fragments(d, D);
      wgmma::fence();
      times_columns<false>(S, d, slot(n) + P::k, kTileBytes);
      wgmma::commit();
      wgmma::wait<0>();
      wgmma::hold(S);
      meeting.free(n);
    }
  }
};

// M^T in two bfloat16 parts, each [KT / 64, KT, 64] and swizzled, as hopper_join.cu multiplies it.
template <int KT>
__device__ __forceinline__ void put_map(const float (&S)[KT / 8][4], unsigned char* to,
                                        int64_t row) {
#pragma unroll
  for (int k = 0; k < KT / 16; ++k) {
    const auto f = as_fragment<2>(S[2 * k], S[2 * k + 1]);
#pragma unroll
    for (int u = 0; u < 4; ++u)
#pragma unroll
      for (int i = 0; i < 2; ++i)
        *reinterpret_cast<uint32_t*>(to + i * KT * KT * 2 + k / 4 * KT * 128 +
                                     swizzled(int(row) + u % 2 * 8, k % 4 * 2 + u / 2) +
                                     threadIdx.x % 4 * 4) = f.part[i][u];
  }
}

// The chunk from which on the gates of a segment leave less than 2^-150, or its first one; each
// warp for itself.
__device__ __forceinline__ int forgotten_before(const DeltaProductForward& p, const ChunkWork& w,
                                                const Stretch& stretch) {
  const int lane = threadIdx.x % 32;
  const int64_t slot0 = first_slot(p, stretch.s, kChunk);
  float later = 0;
  for (int last = stretch.end - 1; last >= stretch.begin; last -= 32) {
    const int chunk = last - lane;
    const int64_t item = (slot0 + chunk) * p.H + stretch.h;
    float sum = chunk < stretch.begin
                    ? 0.f
                    : log2f(w.vectors[(item * kVectorCount + kBefore) * kChunk + kChunk - 1]);
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
      const float others = __shfl_up_sync(0xffffffffu, sum, d);
      if (lane >= d) sum += others;
    }
    const unsigned gone = __ballot_sync(0xffffffffu, later + sum < -150.f);
    if (gone) return max(last - (__ffs(int(gone)) - 1), stretch.begin);
    later += __shfl_sync(0xffffffffu, sum, 31);
  }
  return stretch.begin;
}

// Columns of M or of B.
//
// Where the gates have forgotten what was before some chunk, the map from there on is walked first.
// If its M is zero, to the last bit of the parts in which it is kept, M of the segment is zero,
// too, and B is what has been written since then: what the segment cut there would give.
template <int KT, bool kGate>
__device__ __forceinline__ void make_map(const DeltaProductForward& p, const ChunkWork& w,
                                         const Segments& segments, const Stretch& stretch,
                                         const Columns& of) {
  using At = Places<KT>;
  const auto [first, columns, memory, unit] = of;
  const int groups = columns / 64;
  const Meeting meeting(shared_address(memory) + At::barriers, groups);
  auto* const left = reinterpret_cast<volatile int*>(memory + At::barriers + kSlots * 24);
  pdl_wait();
  int begin = stretch.begin, done = 0;
  bool forgotten = false;
  if (kGate && columns >= KT) {  // all of M is here
    const int from = forgotten_before(p, w, stretch);
    const int tail = stretch.end - from;
    if (2 * tail < stretch.end - stretch.begin) begin = from, done = tail;
  }
  const bool fetches = int(threadIdx.x) >= groups * 128;
  const Maps<KT, kGate> maps{p, w, stretch, meeting, memory, columns, first};
  float S[KT / 8][4];
  const int64_t segment = stretch.at(p),
                column = first + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
  // Everybody learns what the walkers found.
  const auto agree = [&] {
    asm volatile("bar.sync 8, %0;\n" ::"r"(groups * 128 + 128) : "memory");
    int any = 0;
    for (int i = 0; i < groups * 4; ++i) any |= left[i];
    forgotten = any == 0;
    if (!forgotten) begin = stretch.begin;
  };
  if (fetches) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(kPreparerRegisters));
    if (done > 0) {
      maps.template prepare<true>(begin, 0);
      agree();
    }
    if (!unit)
      maps.template prepare<false>(begin, done);
    else if (!forgotten)
      maps.template prepare<true>(begin, done);
    return;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(kWalkerRegisters));
  if (done > 0) {
    unit_state(S, p.K, threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4);
    maps.template walk<true>(S, begin, 0);
    bool any = false;
    each_of_state(S, 0, [&](float& x, int64_t, int64_t) { any = any || !(fabsf(x) <= 0x1p-134f); });
    any = __any_sync(0xffffffffu, any);
    left[threadIdx.x / 32] = any;
    agree();
  }
  if (unit) {
    if (forgotten) {
      clear(S);
    } else {
      unit_state(S, p.K, column);
      maps.template walk<true>(S, begin, done);
    }
    if (column < KT)
      put_map<KT>(S, reinterpret_cast<unsigned char*>(segments.maps + segment * KT * KT), column);
  } else {
    clear(S);
    maps.template walk<false>(S, begin, done);
    put_between(S, place_between<KT / 8>(segments.between + segment * KT * p.V, first));
  }
}

}  // namespace lrnn::kernels::cuda::maps
