#include "kernels/cuda/delta_product/chunk_layout.cuh"

// What the chunk kernels take on this chip, and how large what they keep is.
namespace lrnn::kernels::cuda {

int chunk_query_rows(int64_t N) { return N == 1 ? 64 : 32; }
int64_t chunk_count(const DeltaProductInputs& p) { return chunk_slots(p, kChunk); }

bool chunk_fits(const DeltaProductInputs& p, bool split) {
  if (p.type != Type::kBFloat16 || p.K % 8 != 0 || p.K > 256 || p.V % 16 != 0) return false;
  if (hopper_fits(p)) return true;
  const int KT = p.K <= 32 ? 32 : p.K <= 64 ? 64 : p.K <= 128 ? 128 : 256;
  const int rows = chunk_query_rows(p.N);
  return sweep_size(KT, p.V, rows, kChunk, split).columns > 0 &&
         sweep_size(KT, p.V, rows, rows, split).columns > 0 &&
         gradient_size(p, rows, split).columns > 0;
}

bool hopper_fits(const DeltaProductInputs& p) {
  return p.V % 64 == 0 && p.K > 32 && p.K <= 128 && chip().hopper;
}

int64_t segment_map_size(const DeltaProductInputs& p) { return p.K <= 64 ? 64 * 64 : 128 * 128; }
int64_t segment_slots(const DeltaProductInputs& p, const Segments& segments) {
  if (segments.chunks == 0) return 0;
  return p.cu_seqlens ? chunk_slots(p, int64_t(segments.chunks) * kChunk) : p.S * segments.count;
}
int64_t state_size(const DeltaProductInputs& p) {
  return p.V * (!hopper_fits(p) ? p.K : p.K <= 64 ? 64 : 128);
}

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

}  // namespace lrnn::kernels::cuda
