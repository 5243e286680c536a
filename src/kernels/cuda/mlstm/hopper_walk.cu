#include <type_traits>

#include "kernels/cuda/mlstm/hopper_walk.cuh"

// The walks: chunk after chunk (hopper_walk.cuh has the steps of one), and their launches.
namespace lrnn::kernels::cuda {
namespace {

template <int kDepth, HopperRole kRole>
__device__ __forceinline__ void follow(const HopperWalk& p, const HopperMaps& maps) {
  using Shape = WalkShape<kDepth>;
  extern __shared__ __align__(1024) unsigned char memory[];
  Walk<kDepth, kRole> walk(p, maps, memory);
  const bool alone = p.ranks == 1;
  walk.prepare();
  pdl_wait();
  const bool fetches = threadIdx.x == 0;
  if (fetches && walk.chunks > 0) walk.fetch_stage(0), walk.fetch_pairs(0);
  float state[Shape::kTiles][4];
#pragma unroll
  for (int j = 0; j < Shape::kTiles; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int64_t at = p.first ? walk.place(j, i) : -1;
      state[j][i] = at >= 0 ? p.first[at] : 0.f;
    }
#pragma unroll 1
  for (int step = 0; step < walk.chunks; ++step) {
    walk.begin(step);
    __syncthreads();  // everybody is done with the chunk before
    if (fetches && step + 1 < walk.chunks) walk.fetch_stage(step + 1);
    barrier_wait(walk.full(step % 2), step / 2 % 2);
    walk.clear_beyond();
    float out[8][4];
    walk.read(state, out, !alone && step > 0);
    walk.wait_pairs(step);
    if constexpr (walk.kDots) walk.dots(out);
    walk.next(state, out);
    alone ? __syncthreads() : (cluster_arrive(), cluster_wait());
    if (fetches && step + 1 < walk.chunks) walk.fetch_pairs(step + 1);
    walk.carry();
    alone ? walk.add_up() : (walk.add_up_cluster(), cluster_arrive());
  }
  if (!alone && walk.chunks > 0) cluster_wait();  // nobody reads this block's sums any more
  if (p.last_vector && walk.carries() && (walk.kHidden ? walk.tile == 0 : walk.leads()))
    p.last_vector[walk.vector_at()] = walk.carried;
  if (!p.last) return;
#pragma unroll
  for (int j = 0; j < Shape::kTiles; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int64_t at = walk.place(j, i);
      if (at >= 0) p.last[at] = state[j][i];
    }
}

template <int kDepth>
__global__ void __launch_bounds__(WalkShape<kDepth>::kThreads, WalkShape<kDepth>::kBlocks)
    walk_forward(const __grid_constant__ HopperWalk p, const __grid_constant__ HopperMaps maps) {
  pdl_trigger();
  follow<kDepth, HopperRole::kH>(p, maps);
}

// As many of the three as the grid has rows, from number `first` on.
template <int kDepth>
__global__ void __launch_bounds__(WalkShape<kDepth>::kThreads, WalkShape<kDepth>::kBlocks)
    walk_backward(const __grid_constant__ HopperWalks p, const __grid_constant__ HopperMaps maps,
                  int first) {
  pdl_trigger();
  switch (first + int(blockIdx.y)) {
    case 0: return follow<kDepth, HopperRole::kDq>(p.dq, maps);
    case 1: return follow<kDepth, HopperRole::kDk>(p.dk, maps);
    default: return follow<kDepth, HopperRole::kDv>(p.dv, maps);
  }
}

template <int kDepth, class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), const HopperWalk& p, unsigned walks, void* stream,
            const Arguments&... arguments) {
  allow_shared(kernel, WalkShape<kDepth>::kBytes);
  cudaLaunchAttribute how[2];
  how[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  how[0].val.programmaticStreamSerializationAllowed = 1;
  how[1].id = cudaLaunchAttributeClusterDimension;
  how[1].val.clusterDim.x = unsigned(p.ranks), how[1].val.clusterDim.y = 1,
  how[1].val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(unsigned(p.S * p.H * p.tiles * p.ranks), walks);
  config.blockDim = dim3(WalkShape<kDepth>::kThreads);
  config.dynamicSmemBytes = size_t(WalkShape<kDepth>::kBytes);
  config.stream = static_cast<cudaStream_t>(stream);
  config.attrs = how, config.numAttrs = p.ranks > 1 ? 2 : 1;
  cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...);
  check_launch("mlstm");
}

// Calls f with the depth of a block.
template <class F> void by_depth(int64_t depth, F&& f) {
  if (depth <= 64)
    f(std::integral_constant<int, 64>());
  else if (depth <= 128)
    f(std::integral_constant<int, 128>());
  else
    f(std::integral_constant<int, 256>());
}

void share_out(HopperWalk& p) {
  p.tiles = int((p.columns + 63) / 64);
  p.ranks = p.depth <= 256 ? 1 : p.depth <= 512 ? 2 : 4;
}

}  // namespace

void hopper_walk_forward(HopperWalk p, const HopperMaps& maps, void* stream) {
  share_out(p);
  by_depth(p.depth, [&](auto depth) {
    launch<depth.value>(walk_forward<depth.value>, p, 1, stream, p, maps);
  });
}

void hopper_walk_backward(HopperWalks p, const HopperMaps& maps, void* stream) {
  share_out(p.dq), share_out(p.dk), share_out(p.dv);
  const auto blocks = [](const HopperWalk& x) { return x.tiles * x.ranks; };
  int64_t of[2] = {};
  by_depth(p.dq.depth, [&](auto depth) { of[0] = depth; });
  by_depth(p.dv.depth, [&](auto depth) { of[1] = depth; });
  // They do not need each other: one launch where they are alike.
  const bool alike = of[0] == of[1] && p.dq.ranks == p.dv.ranks && blocks(p.dq) == blocks(p.dv);
  by_depth(p.dq.depth, [&](auto depth) {
    launch<depth.value>(walk_backward<depth.value>, p.dq, alike ? 3 : 2, stream, p, maps, 0);
  });
  if (alike) return;
  by_depth(p.dv.depth, [&](auto depth) {
    launch<depth.value>(walk_backward<depth.value>, p.dv, 1, stream, p, maps, 2);
  });
}

}  // namespace lrnn::kernels::cuda
