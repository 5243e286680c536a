#include "kernels/cuda/mlstm/hopper.cuh"

// Which heads take the way of hopper.cuh, and its kernels in a row.
namespace lrnn::kernels::cuda {

#ifdef LRNN_HOPPER
namespace {

void map_rows(CUtensorMap& map, const Rows& x, const MlstmInputs& p, int64_t size) {
  const MappedRows rows{x.data, size, p.T, p.H, p.B, x.token, x.head, x.batch};
  check(p.T == 0 || make_map(map, rows, kHopperRows), "[mlstm] the copy engine refused the rows");
}
void map_rows(HopperMaps& maps, const MlstmInputs& p) {
  map_rows(maps.q, p.q, p, p.K), map_rows(maps.k, p.k, p, p.K), map_rows(maps.v, p.v, p, p.V);
}

}  // namespace

bool mlstm_hopper_fits(const MlstmInputs& p) {
  return chip().hopper && p.type == Type::kBFloat16 && p.K % 16 == 0 && p.V % 16 == 0 &&
         p.K > 0 && p.V > 0 && p.K <= 1024 && p.V <= 1024 &&
         kept_states(p, kHopperRows) * p.H < (int64_t(1) << 25);
}

int64_t mlstm_hopper_kept(const MlstmInputs& p) { return HopperKept(p, nullptr, true).total; }

int64_t mlstm_hopper_work(const MlstmForward& p) {
  const int64_t each = kPairs / 2 + p.K;  // pairs, and what a chunk adds to n
  return kept_states(p, kHopperRows) * p.H * each +
         (p.states ? 0 : HopperKept(p, nullptr, false).total);
}

int64_t mlstm_hopper_backward_work(const MlstmBackward& p) { return HopperWork(p, nullptr).total; }

void mlstm_hopper_forward(const MlstmForward& p, void* work_, void* stream) {
  if (p.S * p.H == 0) return;
  const int64_t chunks = kept_states(p, kHopperRows) * p.H;
  uint16_t* const pairs = static_cast<uint16_t*>(work_);
  float *const adds = static_cast<float*>(work_) + chunks * kPairs / 2, *const rest =
                                                                            adds + chunks * p.K;
  const HopperKept kept(p, p.states ? static_cast<float*>(p.states) : rest, p.states);
  HopperMaps maps;
  map_rows(maps, p);
  hopper_gates(p, kept, stream);
  if (p.T > 0) hopper_pairs(p, maps, kept, pairs, adds, stream);

  HopperWalk walk;
  static_cast<MlstmInputs&>(walk) = p;
  walk.chunks = kept.chunks;
  walk.out = p.h;
  walk.depth = p.K, walk.columns = p.V, walk.depth_stride = p.V, walk.column_stride = 1;
  walk.pairs = pairs, walk.records = kept.records, walk.vectors = adds;
  walk.first_vector = static_cast<const float*>(p.n);
  walk.last_vector = static_cast<float*>(p.final_n);
  walk.first = static_cast<const float*>(p.C), walk.last = static_cast<float*>(p.final_C);
  if (p.states) walk.read = kept.read, walk.along = kept.along, walk.kept_vectors = kept.n;
  hopper_walk_forward(walk, maps, stream);
}

void mlstm_hopper_backward(const MlstmBackward& p, void* work_, void* stream) {
  if (p.S * p.H == 0) return;
  const HopperKept kept(p, static_cast<float*>(const_cast<void*>(p.states)), true);
  const HopperWork work(p, static_cast<float*>(work_));
  HopperMaps maps;
  map_rows(maps, p);
  map_rows(maps.dh, p.dh, p, p.V);
  if (p.T > 0) hopper_pair_gradients(p, maps, kept, work, stream);

  HopperWalks walks;
  HopperWalk walk;
  static_cast<MlstmInputs&>(walk) = p;
  walk.chunks = kept.chunks, walk.records = kept.records, walk.slopes = work.slopes;
  // C again, transposed.
  walk.out = p.dq;
  walk.depth = p.V, walk.columns = p.K, walk.depth_stride = 1, walk.column_stride = p.V;
  walk.pairs = work.slope_pairs, walk.vectors = kept.n, walk.dots = work.before;
  walk.first = static_cast<const float*>(p.C);
  walks.dq = walk;
  // The gradient of C, from the end.
  walk.out = p.dk;
  walk.vectors = work.adds, walk.dots = work.after;
  walk.first_vector = static_cast<const float*>(p.dfinal_n);
  walk.last_vector = static_cast<float*>(p.dn);
  walk.first = static_cast<const float*>(p.dfinal_C), walk.last = static_cast<float*>(p.dC);
  walks.dk = walk;
  // The same, transposed.
  walk.out = p.dv;
  walk.depth = p.K, walk.columns = p.V, walk.depth_stride = p.V, walk.column_stride = 1;
  walk.pairs = work.reads, walk.last = nullptr;
  walks.dv = walk;
  hopper_walk_backward(walks, maps, stream);
  hopper_gate_gradients(p, kept, work, stream);
}
#else
bool mlstm_hopper_fits(const MlstmInputs&) { return false; }
int64_t mlstm_hopper_kept(const MlstmInputs&) { return 0; }
int64_t mlstm_hopper_work(const MlstmForward&) { return 0; }
int64_t mlstm_hopper_backward_work(const MlstmBackward&) { return 0; }
void mlstm_hopper_forward(const MlstmForward&, void*, void*) {}
void mlstm_hopper_backward(const MlstmBackward&, void*, void*) {}
#endif

}  // namespace lrnn::kernels::cuda
