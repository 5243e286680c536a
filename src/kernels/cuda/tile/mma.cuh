#pragma once
#include <cstdint>

// Tensor cores through mma.sync m16n8k16 on bfloat16, and what feeds them. Fragments as the PTX
// manual draws them; g = lane / 4, c = lane % 4:
//   A 16x16  a0 (g, 2c..) a1 (g+8, 2c..) a2 (g, 2c+8..) a3 (g+8, 2c+8..)
//   B 16x8   b0 (2c.., g) b1 (2c+8.., g)
//   C 16x8   c0 c1 (g, 2c..) c2 c3 (g+8, 2c..)
// so that two C tiles side by side are an A tile, without leaving the registers.
namespace lrnn::kernels::cuda {

__device__ __forceinline__ void mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                    uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void ldmatrix(uint32_t (&r)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address));
}
__device__ __forceinline__ void ldmatrix_transposed(uint32_t (&r)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address));
}

__device__ __forceinline__ uint32_t pack(float low, float high) {
  uint32_t d;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;\n" : "=r"(d) : "f"(high), "f"(low));
  return d;
}
__device__ __forceinline__ float low_of(uint32_t x) { return __uint_as_float(x << 16); }
__device__ __forceinline__ float high_of(uint32_t x) { return __uint_as_float(x & 0xffff0000u); }
__device__ __forceinline__ float reciprocal(float x) {  // to two units in the last place
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;\n" : "=f"(y) : "f"(x));
  return y;
}
// A split number is two bfloat16: hi, the number rounded (pack), and lo, what that rounding left
// over; together 16 binary digits.
__device__ __forceinline__ uint32_t pack_lo(float low, float high, uint32_t packed) {
  return pack(low - low_of(packed), high - high_of(packed));
}

// Rows of bfloat16 in shared memory, padded by 16 bytes so that eight rows lie in different banks.
__host__ __device__ constexpr int row_bytes(int columns) { return columns * 2 + 16; }

// Where lane l points ldmatrix for a 16x16 piece of rows whose B operand is
//   direct      B(k,n) = M[n][k]: two n tiles, b0 b1 of each
//   transposed  B(k,n) = M[k][n]: the same after ldmatrix_transposed
// The same two orders give A(m,k) = M[m][k] (from_rows) and A(m,k) = M[k][m] (transposed rows).
__device__ __forceinline__ uint32_t lane_direct(int stride) {
  const int l = threadIdx.x % 32;
  return (l % 8 + l / 16 * 8) * stride + (l / 8 % 2) * 16;
}
__device__ __forceinline__ uint32_t lane_transposed(int stride) {
  const int l = threadIdx.x % 32;
  return (l % 8 + l / 8 % 2 * 8) * stride + (l / 16) * 16;
}

}  // namespace lrnn::kernels::cuda
