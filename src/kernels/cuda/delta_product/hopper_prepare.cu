#include "kernels/cuda/delta_product/hopper.cuh"
#include "kernels/cuda/delta_product/prepare.cuh"

// T and P of all chunks at once, products on Hopper's warp-group instructions: the tensor cores
// read keys and queries in place, where mma.sync has every warp read all keys.
namespace lrnn::kernels::cuda {
namespace {

using namespace prepare;

// Bytes in shared memory. T takes the place of the keys when they are done, L that of the queries.
struct Places {
  static constexpr int kSquare = (int(sizeof(Square)) + 1023) / 1024 * 1024, q = kSquare,
                       vectors = q + int(sizeof(Square)),
                       decays = vectors + kVectorCount * kChunk * 4;
  static int bytes(bool gate) { return decays + (gate ? int(sizeof(Decays)) : 0); }
  static_assert(2 * kTileBytes <= int(sizeof(Square)));  // 128 channels of keys
};

template <int KT>
__global__ void __launch_bounds__(kThreads) hopper_chunks(DeltaProductInputs p, ChunkWork w) {
  extern __shared__ __align__(1024) unsigned char memory[];
  auto& T = *reinterpret_cast<Square*>(memory);
  auto& L = *reinterpret_cast<Square*>(memory + Places::q);
  auto& vectors = *reinterpret_cast<float(*)[kVectorCount][kChunk]>(memory + Places::vectors);
  auto& decays = *reinterpret_cast<Decays*>(memory + Places::decays);  // with a gate
  const uint32_t k_at = shared_address(memory), q_at = k_at + Places::q;
  const Chunk z{p};
  pdl_trigger();
  if (z.at.count == 0) return;
  const int row0 = threadIdx.x / 32 * 16;

  fetch_tiles<KT, kChunk, kThreads>(threadIdx.x, k_at, z.keys(), p.k.step, z.at.count, int(p.K));
  if (w.P)
    fetch_tiles<KT, kChunk, kThreads>(threadIdx.x, q_at, z.reads(), p.q.token, z.queries.rows,
                                      int(p.K));
  copy_commit();
  fill_vectors(p, z, Scalars(p, z), vectors, decays);
  copy_wait<0>();
  wgmma::publish();
  __syncthreads();

  // Without queries this multiplies keys: a branch between the products would make the compiler
  // wait for them.
  float read[8][4], acc[8][4];
  wgmma::fence();
  rows_by_rows<true, KT>(read, w.P ? q_at : k_at, k_at);
  wgmma::commit();
  rows_by_rows<true, KT>(acc, k_at, k_at);
  wgmma::commit();
  wgmma::wait<1>();
  wgmma::hold(read);
  if (w.P && row0 < w.rows) write_P<true>(p, w, z, read, row0, decays);
  wgmma::wait<0>();
  wgmma::hold(acc);
  __syncthreads();  // keys and queries are read
  finish<true>(p, w, z, {vectors, decays, T, L}, acc, row0);
}

template <int KT>
void launch_prepare(const DeltaProductInputs& p, const ChunkWork& w, cudaStream_t stream) {
  const int bytes = Places::bytes(p.log_gate);
  allow_shared(hopper_chunks<KT>, bytes);
  hopper_chunks<KT><<<unsigned(chunk_slots(p, kChunk) * p.H), kThreads, bytes, stream>>>(p, w);
  check_launch("delta_product");
}

}  // namespace

void hopper_prepare(const DeltaProductInputs& p, const ChunkWork& w, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  p.K <= 64 ? launch_prepare<64>(p, w, on) : launch_prepare<128>(p, w, on);
}

}  // namespace lrnn::kernels::cuda
