#include "kernels/cuda/delta_product/hopper.cuh"

// What hopper_forward.cu does with kMap, 64 columns of B or M a block and three blocks a processor:
// these fit all at once where blocks of twice the width would take a second turn for the last few.
// There are no registers for a fetching group then: a block asks for the next chunk and goes on
// with this one.
namespace lrnn::kernels::cuda {
namespace {

constexpr int kThreads = 128;

template <int KT> struct Layout {  // of one stage, in bytes
  static constexpr int k = 0, T = KT / 64 * kTileBytes, vectors = T + kTileBytes,
                       v = vectors + kVectorCount * kChunk * 4,
                       bytes = (v + kChunk * row_bytes(64) + 1023) / 1024 * 1024,
                       all = 2 * bytes + 16;
};

// What the copy engine brings to each of the two stages.
class Arrivals {
 public:
  __device__ explicit Arrivals(uint32_t at) : at_(at) {
    if (threadIdx.x == 0) {
      barrier_init(at, 1), barrier_init(at + 8, 1);
      wgmma::publish();
    }
    __syncthreads();
  }
  __device__ uint32_t filling(int n) const { return at_ + n % 2 * 8; }
  __device__ void wait(int n) const { barrier_wait(filling(n), n / 2 % 2); }

 private:
  uint32_t at_;
};

template <int KT, bool kGate>
__global__ void __launch_bounds__(kThreads, kMapBlocks)
    hopper_maps(DeltaProductForward p, ChunkWork w, Segments segments) {
  extern __shared__ __align__(1024) unsigned char memory[];
  using L = Layout<KT>;
  pdl_trigger();
  const Stretch stretch(p, segments);
  const int values = int(p.V / 64), tile = int(blockIdx.y);  // tiles of B, then those of M
  const bool of_M = tile >= values;
  if (stretch.segment == segments.count - 1 || (of_M && stretch.segment == 0)) return;
  const uint32_t base = shared_address(memory);
  const Arrivals arrivals(base + 2 * L::bytes);
  pdl_wait();

  const Span span = span_of(p, stretch.s);
  const int64_t slot0 = first_slot(p, stretch.s, kChunk);
  const uint16_t* const k_rows =
      static_cast<const uint16_t*>(p.k.data) + row_at(p.k, span.b, span.t0, 0, stretch.h);
  const uint16_t* const v_rows = static_cast<const uint16_t*>(p.v.data) +
                                 row_at(p.v, span.b, span.t0, 0, stretch.h) + tile * 64;
  // Only the last segment has a chunk that is not whole, and it has no map.
  const auto fetch = [&](int chunk) {
    const int n = chunk - stretch.begin;
    const uint32_t stage = base + n % 2 * L::bytes;
    const int64_t first = int64_t(chunk) * kChunk;
    if (threadIdx.x == 0)
      bring_chunk<L, 0, false>(arrivals.filling(n), stage, L::vectors, w,
                               (slot0 + chunk) * p.H + stretch.h, false);
    fetch_tiles<KT, kChunk, kThreads>(threadIdx.x, stage + L::k, k_rows + first * p.k.step,
                                      p.k.step, kChunk, int(p.K));
    if (!of_M)
      fetch_rows_by<64, kChunk, kThreads>(threadIdx.x, stage + L::v, v_rows + first * p.v.step,
                                          p.v.step, kChunk);
    copy_commit();
  };

  const int own = threadIdx.x / 32 * 16;
  const int64_t column = int64_t(of_M ? tile - values : tile) * 64 + own + threadIdx.x % 32 / 4;
  const int64_t matrix = p.K * p.V;
  const float* const initial = static_cast<const float*>(p.state);
  float S[KT / 8][4];
  if (of_M)
    unit_state(S, p.K, column);
  else
    read_state(S,
               stretch.segment == 0 && initial ? initial + (stretch.s * p.H + stretch.h) * matrix
                                               : nullptr,
               p.K, p.V, column);
  fetch(stretch.begin);
  for (int chunk = stretch.begin; chunk < stretch.end; ++chunk) {
    const int n = chunk - stretch.begin;
    copy_wait<0>();
    wgmma::publish();
    arrivals.wait(n);
    __syncthreads();  // this chunk is there, and all are done with the one before
    if (chunk + 1 < stretch.end) fetch(chunk + 1);
    const unsigned char* const here = memory + n % 2 * L::bytes;
    const uint32_t stage = shared_address(here);
    const float* const vectors = reinterpret_cast<const float*>(here + L::vectors);

    float R[8][4], D[8][4];
    Fragment<1> a[KT / 16], d[4];
    as_fragments(a, S);
    wgmma::fence();
    times_rows<true, kTileBytes>(R, a, stage + L::k);
    wgmma::commit();
    wgmma::wait<0>();
    wgmma::hold(R);
    subtract_from_values<kGate>(R, vectors, !of_M,
                                stage + L::v + lane_direct(row_bytes(64)) + own * 2, row_bytes(64));
    as_fragments(d, R);
    wgmma::fence();
    times_rows<true, kTileBytes>(D, d, stage + L::T);
    wgmma::commit();
    if constexpr (kGate) scale(S, vectors[kBefore * kChunk + kChunk - 1]);
    wgmma::wait<0>();
    wgmma::hold(D);
    if constexpr (kGate) scale_columns(D, vectors + kAfter * kChunk);
    as_fragments(d, D);
    wgmma::fence();
    times_columns<false>(S, d, stage + L::k, kTileBytes);
    wgmma::commit();
    wgmma::wait<0>();
    wgmma::hold(S);
  }
  const int64_t segment = stretch.at(p, segments);
  if (of_M)
    write_state(S, segments.maps + segment * p.K * KT, p.K, KT, column);
  else
    write_state(S, segments.between + segment * matrix, p.K, p.V, column);
}

template <int KT, bool kGate>
void launch_maps(const DeltaProductForward& p, const ChunkWork& w, const Segments& segments,
                 cudaStream_t stream) {
  auto* kernel = hopper_maps<KT, kGate>;
  allow_shared(kernel, Layout<KT>::all);
  pdl_launch(kernel, dim3(unsigned(p.S * p.H * segments.count), unsigned(p.V / 64 + KT / 64)),
             kThreads, Layout<KT>::all, stream, p, w, segments);
}

}  // namespace

void hopper_map(const DeltaProductForward& p, const ChunkWork& w, const Segments& segments,
                void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  if (p.K <= 64)
    p.log_gate ? launch_maps<64, true>(p, w, segments, on)
               : launch_maps<64, false>(p, w, segments, on);
  else
    p.log_gate ? launch_maps<128, true>(p, w, segments, on)
               : launch_maps<128, false>(p, w, segments, on);
}

}  // namespace lrnn::kernels::cuda
