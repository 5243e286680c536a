#pragma once
#include "kernels/cuda/tile/common.cuh"

// Neighbouring elements fetched together: with few wide instructions where they lie on 16 bytes,
// else one by one. What is fetched stays as it was until somebody reads it, so that a load can be
// on its way while others compute.
namespace lrnn::kernels::cuda {

constexpr int kPack = 8;

__host__ __device__ inline int size_of(Type type) {
  return type == Type::kBFloat16 ? 2 : type == Type::kFloat32 ? 4 : 8;
}

// Whether packs of these rows lie on 16 bytes.
inline bool lies_on_packs(const Rows& x, Type type) {
  const int64_t size = size_of(type);
  return reinterpret_cast<uintptr_t>(x.data) % 16 == 0 && x.batch * size % 16 == 0 &&
         x.token * size % 16 == 0 && x.step * size % 16 == 0 && x.head * size % 16 == 0;
}

template <class R> struct Pack {  // R: what the elements are computed in
  static constexpr int kWords = kPack * sizeof(R) / 4;
  uint32_t w[kWords];

  // Elements at .. at+n-1, the others zero.
  __device__ __forceinline__ void load(Type type, const void* data, int64_t at, int n, bool wide) {
    if (wide && n == kPack) {
      const uint4* const from =
          reinterpret_cast<const uint4*>(static_cast<const char*>(data) + at * size_of(type));
      const int count = type == Type::kBFloat16 ? 1 : kWords / 4;
#pragma unroll
      for (int i = 0; i < kWords / 4; ++i) {
        if (i >= count) continue;
        const uint4 x = from[i];
        w[4 * i] = x.x, w[4 * i + 1] = x.y, w[4 * i + 2] = x.z, w[4 * i + 3] = x.w;
      }
      return;
    }
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      if (type == Type::kBFloat16) {
        const uint32_t bits = i < n ? uint32_t(static_cast<const uint16_t*>(data)[at + i]) : 0u;
        w[i / 2] = i % 2 ? w[i / 2] | bits << 16 : bits;
      } else if constexpr (sizeof(R) == 4) {
        w[i] = i < n ? static_cast<const uint32_t*>(data)[at + i] : 0u;
      } else {
        const uint2 bits = i < n ? static_cast<const uint2*>(data)[at + i] : make_uint2(0u, 0u);
        w[2 * i] = bits.x, w[2 * i + 1] = bits.y;
      }
    }
  }

  __device__ __forceinline__ R get(Type type, int i) const {
    if (type == Type::kBFloat16)
      return R(__uint_as_float(i % 2 ? w[i / 2] & 0xffff0000u : w[i / 2] << 16));
    if constexpr (sizeof(R) == 4)
      return __uint_as_float(w[i]);
    else
      return __hiloint2double(int(w[2 * i + 1]), int(w[2 * i]));
  }
};

template <class R>
__device__ __forceinline__ void store_pack(Type type, void* data, int64_t at, int n, bool wide,
                                           const R (&x)[kPack]) {
  if (wide && n == kPack && type != Type::kFloat64) {
    uint4* const to = reinterpret_cast<uint4*>(static_cast<char*>(data) + at * size_of(type));
    const auto pair = [&](int i) {  // the rounding of to_bf16, two at once
      uint32_t both;
      asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(float(x[i + 1])), "f"(float(x[i])));
      return both;
    };
    const auto word = [&](int i) { return __float_as_uint(float(x[i])); };
    if (type == Type::kBFloat16) {
      to[0] = make_uint4(pair(0), pair(2), pair(4), pair(6));
    } else {
      to[0] = make_uint4(word(0), word(1), word(2), word(3));
      to[1] = make_uint4(word(4), word(5), word(6), word(7));
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < kPack; ++i)
    if (i < n) store_as<R>(type, data, at + i, x[i]);
}

}  // namespace lrnn::kernels::cuda
