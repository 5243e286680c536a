#include "kernels/cuda/diagonal/chunk_gradients.cuh"

// The gradients of gated linear attention, a block a chunk: chunk_gradients.cuh says what they are.
namespace lrnn::kernels::cuda {
namespace {

using gla::Chunk, gla::Layout;

template <int kKeys>
__global__ void __launch_bounds__(4 * kKeys, kKeys == 64 ? 2 : 1)
    gradients(const DiagonalBackward p, const GlaStates S_, const GlaStates G_, const GlaWide wide,
              const bool wide_dv) {
  using Shape = GlaShape<kKeys>;
  using At = Layout<kKeys>;
  extern __shared__ __align__(16) unsigned char memory[];
  const GlaChunk at(p);
  if (at.count == 0) return;
  Chunk<kKeys> run(p, memory, at);
  const auto& on = run.on;
  const typename Shape::Values v(memory + At::v), d_o(memory + At::d_o);
  const typename Shape::State S(memory + At::S), G(memory + At::G);
  const typename Shape::Keys x(memory + At::x);
  const int tiles = int(S_.tiles);
  const auto fetch_late = [&](int tile) {
    fetch_values<Shape::kThreads>(d_o, p.d_o, at, p.V, int64_t(tile) * kGlaColumns, wide.o);
    fetch_state<kKeys>(G, G_.states + at.item() * G_.record + int64_t(tile) * kKeys * kGlaColumns);
  };
  const auto fetch = [&](int tile) {
    fetch_late(tile);
    fetch_values<Shape::kThreads>(v, p.v, at, p.V, int64_t(tile) * kGlaColumns, wide.v);
    fetch_state<kKeys>(S, S_.states + at.item() * S_.record + int64_t(tile) * kKeys * kGlaColumns);
    copy_commit();
  };
  fetch_rows<float, kKeys>(reinterpret_cast<float*>(memory + At::log_decay), p.log_decay, at, p.K,
                           wide.log_decay);
  constexpr int kStride = Shape::Rows16::kStride / 2;
  fetch_rows<uint16_t, kKeys, kStride>(reinterpret_cast<uint16_t*>(memory + At::q), p.q, at, p.K,
                                       wide.q);
  fetch_rows<uint16_t, kKeys, kStride>(reinterpret_cast<uint16_t*>(memory + At::k), p.k, at, p.K,
                                       wide.k);
  fetch(0);
  float read[2][2][4] = {}, written[2][2][4] = {};
  {
    Tile dA[Chunk<kKeys>::kBlocksOfA] = {}, through[2] = {};
    for (int tile = 0; tile < tiles; ++tile) {
      copy_wait<0>();
      __syncthreads();
      run.add_values(dA, read, written, through);
      if (tile + 1 == tiles) break;
      __syncthreads();
      fetch(tile + 1);
    }
    run.share_dA(dA);
    run.share_through(through);
  }
  run.load();
  __syncthreads();
  run.take_states(read, written);
  run.template put_cross<1>(x);
  run.fetch_near(S_.pairs + GlaChunk::item() * 1024);
  copy_commit();
  run.add_near();
  Tile crossing = {};
  __syncthreads();
  run.template cross<1>(x);
  if (on.warp < 2) cross_pairs<kKeys>(crossing, x, GlaCross(on.warp));
  __syncthreads();
  run.template put_cross<2>(x);
  __syncthreads();
  run.template cross<2>(x);
  if (on.warp >= 2 && on.warp < 6) cross_pairs<kKeys>(crossing, x, GlaCross(on.warp));
  copy_wait<0>();
  __syncthreads();
  fetch_late(0);
  copy_commit();
  run.share_pairs(crossing);
  run.put_written_keys(x);
  run.store();
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile > 0) fetch_late(tile), copy_commit();
    copy_wait<0>();
    __syncthreads();
    run.value_gradients(x);
    __syncthreads();
    store_values<Shape::kThreads>(v, p.dv, at, p.V, int64_t(tile) * kGlaColumns, wide_dv);
  }
}

}  // namespace

bool diagonal_chunk_fits(const DiagonalInputs& p) {
  const int keys = int(diagonal_chunk_keys(p));
  return keys > 0 && chip().shared >= gla_most_shared(keys);
}

void diagonal_chunk_backward(const DiagonalBackward& p, void* dstates, void* stream) {
  if (p.S * p.H == 0) return;
  const GlaStates S(p, static_cast<float*>(const_cast<void*>(p.states))),
      G(p, static_cast<float*>(dstates));
  const auto on = static_cast<cudaStream_t>(stream);
  gla_dstates(p, G, on);
  with_gla_keys(p, [&](auto keys) {
    constexpr int kKeys = decltype(keys)::value;
    constexpr int kBytes = Layout<kKeys>::bytes;
    allow_shared(gradients<kKeys>, kBytes);
    if (gla_blocks(p) > 0)
      gradients<kKeys><<<gla_blocks(p), 4 * kKeys, kBytes, on>>>(p, S, G, GlaWide(p, p.d_o),
                                                                 lies_on_packs(p.dv, p.type));
  });
  check_launch("diagonal");
}

}  // namespace lrnn::kernels::cuda
