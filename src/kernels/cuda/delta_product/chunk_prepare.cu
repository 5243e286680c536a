#include "kernels/cuda/delta_product/prepare.cuh"

// T and P of all chunks at once, products on mma.sync.
namespace lrnn::kernels::cuda {
namespace {

using namespace prepare;

// Rows of `left` times all rows of `right`, up to the tile of 16 columns that holds column `last`.
template <int KT>
__device__ __forceinline__ void products(float (&acc)[8][4], uint32_t left, uint32_t right,
                                         int last) {
  constexpr int kStep = row_bytes(KT);
  const uint32_t a_at = left + lane_transposed(kStep), b_at = right + lane_direct(kStep);
#pragma unroll
  for (int t = 0; t < 8; ++t)
#pragma unroll
    for (int u = 0; u < 4; ++u) acc[t][u] = 0;
#pragma unroll 4
  for (int k = 0; k < KT / 16; ++k) {
    uint32_t a[4], b[4];
    ldmatrix(a, a_at + k * 32);
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      if (n * 16 > last) continue;
      ldmatrix(b, b_at + n * 16 * kStep + k * 32);
      mma(acc[2 * n], a, b[0], b[1]);
      mma(acc[2 * n + 1], a, b[2], b[3]);
    }
  }
}

// T takes the place of the keys when they are done, L that of the queries.
template <int KT> struct Places {
  static constexpr int kSquare = int(sizeof(Square)), kKeys = kChunk * row_bytes(KT),
                       q = kKeys > kSquare ? kKeys : kSquare;
  static int bytes(int rows) {
    const int queries = rows * row_bytes(KT);
    return q + (queries > kSquare ? queries : kSquare);
  }
};

template <int KT>
__global__ void __launch_bounds__(kThreads) prepare_chunks(DeltaProductInputs p, ChunkWork w) {
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ float vectors[kVectorCount][kChunk];
  __shared__ Decays decays;
  auto& T = *reinterpret_cast<Square*>(memory);
  auto& L = *reinterpret_cast<Square*>(memory + Places<KT>::q);
  const uint32_t k_at = shared_address(memory), q_at = k_at + Places<KT>::q;
  const Chunk z{p};
  if (z.at.count == 0) return;
  const int row0 = threadIdx.x / 32 * 16;

  fetch_rows<KT>(k_at, z.keys(), p.k.step, kChunk, z.at.count, int(p.K));
  if (w.P) fetch_rows<KT>(q_at, z.reads(), p.q.token, w.rows, z.queries.rows, int(p.K));
  copy_commit();
  fill_vectors(p, z, Scalars(p, z), vectors, decays);
  copy_wait<0>();
  __syncthreads();

  float acc[8][4];
  const int read0 = w.rows - 16 - row0;  // long rows of P for the warps with short rows of L
  if (w.P && read0 >= 0) {
    const int64_t last_read = z.queries.at(read0 + 15);
    products<KT>(acc, q_at + read0 * row_bytes(KT), k_at,
                 int(last_read < kChunk ? last_read : kChunk - 1));
    write_P<false>(p, w, z, acc, read0, decays);
  }
  products<KT>(acc, k_at + row0 * row_bytes(KT), k_at, row0 + 15);
  __syncthreads();  // keys and queries are read
  finish<false>(p, w, z, {vectors, decays, T, L}, acc, row0);
}

template <int KT>
void launch_prepare(const DeltaProductInputs& p, const ChunkWork& w, cudaStream_t stream) {
  const int bytes = Places<KT>::bytes(w.P ? w.rows : 0);
  allow_shared(prepare_chunks<KT>, bytes);
  prepare_chunks<KT><<<unsigned(chunk_slots(p, kChunk) * p.H), kThreads, bytes, stream>>>(p, w);
  check_launch("delta_product");
}

}  // namespace

// The chunk kernels need Hopper's shared memory; chips with less get the exact ones.
bool chunk_fits(const DeltaProductInputs& p) {
  int device = 0, shared = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  return shared >= kMostShared && p.type == Type::kBFloat16 && p.K % 8 == 0 && p.K <= 256 &&
         p.V % 16 == 0;
}
int chunk_query_rows(int64_t N) { return N == 1 ? 64 : 32; }
int64_t chunk_count(const DeltaProductInputs& p) { return chunk_slots(p, kChunk); }

bool hopper_fits(const DeltaProductInputs& p) {
#ifdef LRNN_HOPPER
  int device = 0, major = 0, minor = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
  return major == 9 && minor == 0 && p.V % 64 == 0 && p.K > 32 && p.K <= 128;
#else
  return p.K < 0;
#endif
}

int64_t segment_map_size(const DeltaProductInputs& p) { return p.K <= 64 ? 64 * 64 : 128 * 128; }
int64_t segment_slots(const DeltaProductInputs& p, const Segments& segments) {
  if (segments.chunks == 0) return 0;
  return p.cu_seqlens ? chunk_slots(p, int64_t(segments.chunks) * kChunk) : p.S * segments.count;
}
int64_t state_size(const DeltaProductInputs& p) {
  return p.V * (!hopper_fits(p) ? p.K : p.K <= 64 ? 64 : 128);
}
int chip_processors() { return processors(); }

bool sweeps_make_P(const DeltaProductInputs& p, bool split) {
  return hopper_fits(p) && makes_P(split);
}

StateGradients lend_rows(const DeltaProductBackward& p, bool split) {
  StateGradients at;
  if (split || !hopper_fits(p) || state_size(p) != p.V * p.K) return at;
  const int64_t reads = p.q.data ? kChunk / p.N : 0;  // at least, of a whole chunk
  at.in_dk = int(p.V < kChunk ? p.V : kChunk);
  at.in_dq = int(p.V - at.in_dk < reads ? p.V - at.in_dk : reads);
  return at;
}
int64_t chunks_size(const DeltaProductBackward& p, const StateGradients& at) {
  return chunk_count(p) * p.H * (state_size(p) - (at.in_dk + at.in_dq) * p.K);
}
int64_t ends_size(const DeltaProductBackward& p, const StateGradients& at) {
  if (!p.cu_seqlens && p.T * p.N % kChunk == 0) return 0;
  return p.S * p.H * (at.in_dk + at.in_dq) * p.K;
}

void chunk_prepare(const DeltaProductInputs& p, const ChunkWork& w, void* stream) {
  if (chunk_slots(p, kChunk) * p.H == 0) return;
#ifdef LRNN_HOPPER
  if (hopper_fits(p)) return hopper_prepare(p, w, stream);
#endif
  const auto on = static_cast<cudaStream_t>(stream);
  if (p.K <= 32) return launch_prepare<32>(p, w, on);
  if (p.K <= 64) return launch_prepare<64>(p, w, on);
  if (p.K <= 128) return launch_prepare<128>(p, w, on);
  return launch_prepare<256>(p, w, on);
}

}  // namespace lrnn::kernels::cuda
