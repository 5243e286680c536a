#pragma once
#include "kernels/cuda/delta_product/chunk_channels.cuh"
#include "kernels/cuda/delta_product/chunk_sweep.cuh"

// What the two sweeps with gates of key channels share. Shared memory has one chunk in three
// pieces, each of which a third of the work on a chunk reads: when that is done the next chunk's
// takes its place, while the others are worked on.
namespace lrnn::kernels::cuda::channels {

template <int KT, bool kSplit, bool kForward> struct Sweep : ChunkSweep<KT, kSplit, kForward> {
  using Base = ChunkSweep<KT, kSplit, kForward>;
  using At = Record<KT, kSplit>;
  using State = typename Base::State;
  using Base::kTiles, Base::kParts, Base::c, Base::g, Base::own, Base::v0, Base::memory,
      Base::columns, Base::values, Base::value_rows, Base::p;
  const unsigned char* work;

  struct Layout {
    static constexpr int Kg = 0, Qg = Kg + At::Keys::kBytes, Kr = Qg + At::Keys::kBytes,
                         T = Kr + At::Keys::kBytes, P = T + At::Inverse::kBytes,
                         beta = P + At::Pairs::kBytes, decay = beta + 4 * kChunk,
                         values = decay + 4 * KT;
    static constexpr int bytes(int columns) { return values + kChunk * row_bytes(columns); }
  };
  const typename At::Keys Kg{memory + Layout::Kg}, Qg{memory + Layout::Qg}, Kr{memory + Layout::Kr};
  const typename At::Inverse T{memory + Layout::T};
  const typename At::Pairs P{memory + Layout::P};
  float* const beta = reinterpret_cast<float*>(memory + Layout::beta);
  float* const decays = reinterpret_cast<float*>(memory + Layout::decay);
  const Matrix rows_of_values{shared_address(memory + Layout::values), row_bytes(columns)};

  __device__ __forceinline__ const unsigned char* record(int chunk) const {
    return work + this->item(chunk) * At::kBytes;
  }
  __device__ __forceinline__ Queries queries(int chunk) const {
    const int64_t first = int64_t(chunk) * kChunk;
    return {p, first, this->count(first)};
  }
  // The three pieces, and with one of them V or dO. By all threads, for a chunk that there is.
  __device__ __forceinline__ void fetch_solve(int chunk) const {
    if (chunk >= 0 && chunk < this->chunks) {
      const int64_t first = int64_t(chunk) * kChunk;
      fetch(Kg, record(chunk) + At::kKg);
      fetch(T, record(chunk) + At::kT);
      fetch_floats(beta, record(chunk) + At::kBeta, kChunk);
      if constexpr (kForward)
        fetch_rows(rows_of_values, value_rows + first * values.step, values.step, kChunk,
                   this->count(first), int(p.V - this->v_tile));
    }
    copy_commit();
  }
  __device__ __forceinline__ void fetch_read(int chunk) const {
    if (p.q.data && chunk >= 0 && chunk < this->chunks) {
      fetch(Qg, record(chunk) + At::kQg);
      fetch(P, record(chunk) + At::kP);
      if constexpr (!kForward) {
        const Queries q = queries(chunk);
        fetch_queries(rows_of_values, value_rows + q.token * values.token, values.token, q,
                      int(p.V - this->v_tile));
      }
    }
    copy_commit();
  }
  __device__ __forceinline__ void fetch_write(int chunk) const {
    if (chunk >= 0 && chunk < this->chunks) {
      fetch(Kr, record(chunk) + At::kKr);
      fetch_floats(decays, record(chunk) + At::kDecay, KT);
    }
    copy_commit();
  }
  // Of three pieces on their way the first has come, for the whole block, and everybody is done
  // with what was worked on before.
  __device__ __forceinline__ static void arrived() {
    copy_wait<1>();
    __syncthreads();
  }

  // acc += S M^T for 16 kN rows of M from `row` on.
  template <int kN>
  __device__ __forceinline__ void over_keys(float (&acc)[2 * kN][4], const State& S,
                                            const typename At::Keys& M, int row) const {
#pragma unroll
    for (int k = 0; k < KT / 16; ++k) {
      const auto a = as_fragment<kParts>(S[2 * k], S[2 * k + 1]);
#pragma unroll
      for (int n = 0; n < kN; ++n)
        multiply(acc[2 * n], acc[2 * n + 1], a, M.b_rows(k * 16, row + n * 16));
    }
  }
  // S += A M for the 16 rows of M from `row` on.
  template <int kA>
  __device__ __forceinline__ void add_rows(State& S, const Fragment<kA>& a,
                                           const typename At::Keys& M, int row) const {
#pragma unroll
    for (int t = 0; t < kTiles; t += 2) multiply(S[t], S[t + 1], a, M.b_columns(row, t * 8));
  }
};

// Value channels of a block, and how many blocks share a head: the more, the fewer heads there are.
inline SweepSize narrowed(const DeltaProductInputs& p) {
  SweepSize size;
  size.tiles = (p.V + kMostColumns - 1) / kMostColumns;
  while (2 * size.tiles * p.S * p.H <= chip().processors && p.V / size.tiles > 32) size.tiles *= 2;
  size.columns = int((p.V + size.tiles * 16 - 1) / (size.tiles * 16) * 16);
  size.tiles = (p.V + size.columns - 1) / size.columns;
  return size;
}

// A sweep in one of the two directions, each a struct with `walk`.
template <class Direction>
__global__ void __launch_bounds__(kMostColumns * 2, 1)
    sweep_channels(typename Direction::Problem p, ChannelChunks w, SweepSize size) {
  extern __shared__ __align__(16) unsigned char memory[];
  ChunkWork lo;
  lo.error_lo = w.error_lo, lo.dv_lo = w.dv_lo;
  const Direction run{
      {{p, lo, Direction::values_of(p), memory, size}, static_cast<const unsigned char*>(w.work)},
      p};
  run.walk(w);
}

template <template <int, bool> class Direction, class Problem>
void launch_sweep(const Problem& p, const ChannelChunks& w, void* stream) {
  if (p.S * p.H == 0) return;
  with_record(p, w.split, [&]<int KT, bool kSplit>() {
    SweepSize size = narrowed(p);
    size.bytes = Direction<KT, kSplit>::Layout::bytes(size.columns);
    auto* kernel = sweep_channels<Direction<KT, kSplit>>;
    allow_shared(kernel, size.bytes);
    kernel<<<dim3(unsigned(p.S * p.H), unsigned(size.tiles)), size.columns * 2, size.bytes,
             static_cast<cudaStream_t>(stream)>>>(p, w, size);
  });
  check_launch("delta_product");
}

}  // namespace lrnn::kernels::cuda::channels
