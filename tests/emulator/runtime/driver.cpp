#include <cuda.h>

#include <cstring>

#include "tests/emulator/runtime/runtime.h"
#include "tests/emulator/runtime/tensor_map.h"

// The one function of the driver that kernels' callers ask for: it makes tensor maps.
namespace lrnn::emulator {
namespace {

int element_bytes(CUtensorMapDataType type) {
  switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_UINT8: return 1;
    case CU_TENSOR_MAP_DATA_TYPE_UINT16:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16: return 2;
    case CU_TENSOR_MAP_DATA_TYPE_UINT32:
    case CU_TENSOR_MAP_DATA_TYPE_INT32:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ: return 4;
    case CU_TENSOR_MAP_DATA_TYPE_UINT64:
    case CU_TENSOR_MAP_DATA_TYPE_INT64:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT64: return 8;
    default: return 0;  // packed types of 4 and 6 bits
  }
}

bool is_integer(CUtensorMapDataType type) {
  return type == CU_TENSOR_MAP_DATA_TYPE_UINT8 || type == CU_TENSOR_MAP_DATA_TYPE_UINT16 ||
         type == CU_TENSOR_MAP_DATA_TYPE_UINT32 || type == CU_TENSOR_MAP_DATA_TYPE_INT32 ||
         type == CU_TENSOR_MAP_DATA_TYPE_UINT64 || type == CU_TENSOR_MAP_DATA_TYPE_INT64;
}

int swizzle_bytes(CUtensorMapSwizzle swizzle) {
  switch (swizzle) {
    case CU_TENSOR_MAP_SWIZZLE_NONE: return 0;
    case CU_TENSOR_MAP_SWIZZLE_32B: return 32;
    case CU_TENSOR_MAP_SWIZZLE_64B: return 64;
    default: return 128;
  }
}

// Refuses what the driver's manual says it refuses.
CUresult encode_tiled(CUtensorMap* to, CUtensorMapDataType type, cuuint32_t rank, void* base,
                      const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* box,
                      const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                      CUtensorMapSwizzle swizzle, CUtensorMapL2promotion,
                      CUtensorMapFloatOOBfill fill) {
  const int bytes = element_bytes(type);
  if (bytes == 0) return CUDA_ERROR_NOT_SUPPORTED;
  const bool plain = interleave == CU_TENSOR_MAP_INTERLEAVE_NONE;
  const bool wide = interleave == CU_TENSOR_MAP_INTERLEAVE_32B;
  const uintptr_t align = wide ? 32 : 16;
  if (!to || !base || uintptr_t(to) % 64 || uintptr_t(base) % align)
    return CUDA_ERROR_INVALID_VALUE;
  if (rank < (plain ? 1u : 3u) || rank > cuuint32_t(TensorMap::kMostRank))
    return CUDA_ERROR_INVALID_VALUE;
  TensorMap map;
  map.base = uintptr_t(base);
  map.rank = uint8_t(rank), map.type = uint8_t(type), map.element_bytes = uint8_t(bytes);
  map.interleave = uint8_t(interleave), map.swizzle = uint8_t(swizzle), map.fill = uint8_t(fill);
  for (cuuint32_t i = 0; i < rank; ++i) {
    if (sizes[i] < 1 || sizes[i] > cuuint64_t(1) << 32 || box[i] < 1 || box[i] > 256 ||
        element_strides[i] < 1 || element_strides[i] > 8)
      return CUDA_ERROR_INVALID_VALUE;
    map.sizes[i] = uint32_t(sizes[i] - 1);
    map.box[i] = uint16_t(box[i]), map.element_strides[i] = uint8_t(element_strides[i]);
    if (i + 1 == rank) break;
    if (strides[i] % align || strides[i] >= cuuint64_t(1) << 40) return CUDA_ERROR_INVALID_VALUE;
    map.strides[i] = strides[i];
  }
  const int row = int(box[0]) * bytes;
  if (plain && row % 16) return CUDA_ERROR_INVALID_VALUE;
  if (plain && swizzle_bytes(swizzle) && row > swizzle_bytes(swizzle))
    return CUDA_ERROR_INVALID_VALUE;
  if (wide && swizzle != CU_TENSOR_MAP_SWIZZLE_32B) return CUDA_ERROR_INVALID_VALUE;
  if (fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE && is_integer(type))
    return CUDA_ERROR_INVALID_VALUE;
  std::memset(to, 0, sizeof *to);
  std::memcpy(to, &map, sizeof map);
  return CUDA_SUCCESS;
}

cudaError_t find(const char* symbol, void** function, cudaDriverEntryPointQueryResult* result) {
  const bool known = std::strcmp(symbol, "cuTensorMapEncodeTiled") == 0;
  *function = known ? reinterpret_cast<void*>(&encode_tiled) : nullptr;
  if (result) *result = known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

}  // namespace
}  // namespace lrnn::emulator

using namespace lrnn::emulator;

extern "C" {

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long,
                                    cudaDriverEntryPointQueryResult* result) {
  return find(symbol, function, result);
}
cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  return find(symbol, function, result);
}

}  // extern "C"
