#include "kernels/cuda/delta_product/hopper_forward.cuh"
#include "kernels/cuda/delta_product/hopper_map.cuh"

// The launches of the forward sweep. Where sequences are cut into segments, the first ones are
// walked beside the maps of those behind them: by hopper_map.cuh, or, with split operands, by the
// sweep.
namespace lrnn::kernels::cuda {
namespace {

using namespace forward;

// kBegin: the first segments, which begin with the sequences, and the maps of all between them and
// the last. Else all other segments; all where there is but one.
template <int KT, int kRows, bool kSplit, bool kGate, bool kBegin>
__global__ void __launch_bounds__(kMostThreads, 1)
    hopper_sweep(DeltaProductForward p, ChunkWork w, Segments segments, int columns,
                 const __grid_constant__ Leaving boxes) {
  extern __shared__ __align__(1024) unsigned char memory[];
  pdl_trigger();
  if constexpr (!kBegin) {
    const bool cut = segments.chunks > 0;
    const unsigned begun = cut && !p.cu_seqlens ? unsigned(p.S * p.H) : 0;
    const Stretch stretch(p, segments, blockIdx.x + begun);
    // Even if no block walks, this ends after what was before it.
    if (cut && (stretch.first() || stretch.empty())) return pdl_wait();
    return sweep<KT, kRows, kSplit, kGate, false>(
        p, w, segments, stretch, {int64_t(blockIdx.y) * columns, columns, memory}, boxes);
  }
  // Tiles of values, then those of M: what follows the same keys runs at the same time.
  const unsigned tiles = unsigned(p.V) / columns, all = tiles + (KT + columns - 1) / columns,
                 tile = blockIdx.x % all;
  const Stretch stretch(p, segments, blockIdx.x / all);
  const bool unit = tile >= tiles;
  const int64_t first = int64_t(unit ? tile - tiles : tile) * columns;
  if (stretch.first() ? unit : stretch.last || stretch.empty()) return;
  if (stretch.first())
    sweep<KT, kRows, kSplit, kGate, false>(p, w, segments, stretch, {first, columns, memory},
                                           boxes);
  else if constexpr (kSplit)
    sweep<KT, kRows, kSplit, kGate, true>(p, w, segments, stretch, {first, columns, memory, unit},
                                          boxes);
  else
    maps::make_map<KT, kGate>(p, w, segments, stretch, {first, columns, memory, unit});
}

template <int KT, int kRows, bool kSplit, bool kGate>
void launch_all(const DeltaProductForward& p, const ChunkWork& w, const Segments& segments,
                cudaStream_t stream) {
  const auto bytes = [](int columns) {
    return Forward<KT, kRows, kSplit, kGate, false>::L::all(columns);
  };
  Leaving boxes;
  if constexpr (!kSplit) {
    boxes.errors = {p.error, p.H * p.T * p.N * p.V, 0, p.V, p.T * p.N * p.V};
    boxes.o = boxes_of(p, p.o, p.V, true), boxes.e = boxes_of(p, boxes.errors, p.V, false);
  }
  int64_t walks = p.S * p.H;
  if (segments.chunks > 0) {
    const int64_t slots = segment_slots(p, segments), inner = slots > 2 * p.S ? slots - 2 * p.S : 0;
    const int columns = columns_of(p.V, (p.S * p.V + inner * (p.V + KT)) * p.H / 128);
    const int64_t tiles = p.V / columns, units = (KT + columns - 1) / columns;
    auto* kernel = hopper_sweep<KT, kRows, kSplit, kGate, true>;
    const int most = kSplit ? bytes(columns) : max(bytes(columns), maps::Places<KT>::all);
    allow_shared(kernel, most);
    // Without the last segments, where they are the last blocks.
    const int64_t blocks = (p.cu_seqlens ? slots : slots - p.S) * p.H;
    pdl_launch(kernel, dim3(unsigned(blocks * (tiles + units))), columns * 2 + kFetchers, most,
               stream, p, w, segments, columns, boxes);
    hopper_join(p, segments, true, kSplit, stream);
    walks = (p.cu_seqlens ? slots : slots - p.S) * p.H;
  }
  const int columns = columns_of(p.V, walks * p.V / 128);
  auto* kernel = hopper_sweep<KT, kRows, kSplit, kGate, false>;
  allow_shared(kernel, bytes(columns));
  pdl_launch(kernel, dim3(unsigned(walks), unsigned(p.V / columns)), columns * 2 + kFetchers,
             bytes(columns), stream, p, w, segments, columns, boxes);
}

template <int KT, int kRows>
void launch_hopper(const DeltaProductForward& p, const ChunkWork& w, const Segments& segments,
                   cudaStream_t stream) {
  if (p.log_gate)
    w.split ? launch_all<KT, kRows, true, true>(p, w, segments, stream)
            : launch_all<KT, kRows, false, true>(p, w, segments, stream);
  else
    w.split ? launch_all<KT, kRows, true, false>(p, w, segments, stream)
            : launch_all<KT, kRows, false, false>(p, w, segments, stream);
}

}  // namespace

void hopper_forward(const DeltaProductForward& p, const ChunkWork& w, const Segments& segments,
                    void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  if (p.S * p.H == 0) return;
  if (p.K <= 64)
    w.rows == 64 ? launch_hopper<64, 64>(p, w, segments, on)
                 : launch_hopper<64, 32>(p, w, segments, on);
  else
    w.rows == 64 ? launch_hopper<128, 64>(p, w, segments, on)
                 : launch_hopper<128, 32>(p, w, segments, on);
}

}  // namespace lrnn::kernels::cuda
