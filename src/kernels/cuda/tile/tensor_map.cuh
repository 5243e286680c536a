#pragma once
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>

// Tensor maps: rows of a tensor as the copy engine (TMA) sees them. It brings and takes boxes of
// them, swizzled as the warp-group products read them (wgmma.cuh), with zeros for what lies
// outside.
namespace lrnn::kernels::cuda {

// bfloat16 [batches, rows, heads, channels]; strides count elements.
struct MappedRows {
  const void* data;
  int64_t channels, rows, heads, batches;
  int64_t row, head, batch;
};

// Boxes of 64 channels and `box` rows. False where the copy engine does not take such strides.
inline bool make_map(CUtensorMap& map, const MappedRows& x, int box) {
  static const auto encode = [] {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result;
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault,
                                     &result);
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(found);
  }();
  if (!encode) return false;
  const auto bytes = [](int64_t size, int64_t stride) {
    return cuuint64_t(size > 1 ? stride * 2 : 16);  // of one, the stride does not matter
  };
  const cuuint64_t sizes[] = {cuuint64_t(x.channels), cuuint64_t(x.rows), cuuint64_t(x.heads),
                              cuuint64_t(x.batches)};
  const cuuint64_t strides[] = {bytes(x.rows, x.row), bytes(x.heads, x.head),
                                bytes(x.batches, x.batch)};
  const cuuint32_t boxes[] = {64, cuuint32_t(box), 1, 1}, each[] = {1, 1, 1, 1};
  return encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, const_cast<void*>(x.data), sizes,
                strides, boxes, each, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

__device__ __forceinline__ void bring_box(uint32_t barrier, uint32_t to, const CUtensorMap& map,
                                          int channel, int row, int head, int batch) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%2, %3, %4, %5}], [%6];\n" ::"r"(to),
      "l"(&map), "r"(channel), "r"(row), "r"(head), "r"(batch), "r"(barrier)
      : "memory");
}
// One of the copies that async.cuh counts in groups.
__device__ __forceinline__ void send_box(const CUtensorMap& map, uint32_t from, int channel,
                                         int row, int head, int batch) {
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3, %4}], "
      "[%5];\n" ::"l"(&map),
      "r"(channel), "r"(row), "r"(head), "r"(batch), "r"(from)
      : "memory");
}

}  // namespace lrnn::kernels::cuda
