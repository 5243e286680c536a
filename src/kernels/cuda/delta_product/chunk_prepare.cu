#include "kernels/cuda/delta_product/chunk_layout.cuh"
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

template <int KT>
__global__ void __launch_bounds__(kThreads) prepare_chunks(DeltaProductInputs p, ChunkWork w) {
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ float vectors[kVectorCount][kChunk];
  __shared__ Decays decays;
  auto& T = *reinterpret_cast<Square*>(memory);
  constexpr int kQueries = PreparePlaces(KT, 0).q;
  auto& L = *reinterpret_cast<Square*>(memory + kQueries);
  const uint32_t k_at = shared_address(memory), q_at = k_at + kQueries;
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

static_assert(sizeof(Square) == PreparePlaces::kSquare);

}  // namespace

void chunk_prepare(const DeltaProductInputs& p, const ChunkWork& w, void* stream) {
  if (chunk_slots(p, kChunk) * p.H == 0) return;
#ifdef LRNN_HOPPER
  if (hopper_fits(p)) return hopper_prepare(p, w, stream);
#endif
  with_padded_keys(p.K, [&]<int KT>() {
    const int bytes = PreparePlaces(KT, w.P ? w.rows : 0).bytes;
    allow_shared(prepare_chunks<KT>, bytes);
    prepare_chunks<KT><<<unsigned(chunk_slots(p, kChunk) * p.H), kThreads, bytes,
                         static_cast<cudaStream_t>(stream)>>>(p, w);
  });
  check_launch("delta_product");
}

}  // namespace lrnn::kernels::cuda
