#pragma once
#include "kernels/cuda/delta_product/hopper_fused.cuh"

// The group that makes T and P (hopper_squares.cuh), a chunk ahead of those that follow the state.
namespace lrnn::kernels::cuda::fused {

template <int kRows, bool kGates> struct Preparer {
  using Products = typename Squares<kGates>::Products;
  static constexpr bool kOne = kRows == kChunk;
  const Sequence& of;
  const Barriers& barriers;
  unsigned char* memory;
  const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32, g = lane / 4;

  __device__ __forceinline__ uint32_t base() const { return shared_address(memory); }

  __device__ __forceinline__ void put_P(const Squares<kGates>& squares, const Products& A, int n,
                                        uint32_t to) const {
    const Reading<kOne> reading(of.p, n * kChunk, of.count(n));
    const int r = warp * 16 + g, last[2] = {reading.last(r), reading.last(r + 8)};
    const int seen = reading.last(min(warp * 16 + 15, reading.rows - 1));
    const int row = warp * 16 + lane % 16;
    squares.make_P(
        A, last, reading.last(warp * 16), seen, float(of.p.scale), [&](int b, const Tile& x) {
          stmatrix(to + swizzled(row, 2 * b + lane / 16), as_fragment<1>(x[0], x[1]).part[0]);
        });
  }
  __device__ __forceinline__ uint32_t key(int n) const {
    return base() + Places::k + Ring<kKeySlots>::slot(n) * 2 * kTileBytes;
  }
  // Starts K K^T.
  __device__ __forceinline__ void start(Products& A, int n) const {
    barriers.keys.wait_filled(n);
    wgmma::fence();
    rows_by_rows<true, 128>(A, key(n), key(n));
    wgmma::commit();
  }
  // A is K K^T, and becomes that of the next chunk: it runs while the columns of T are made, as the
  // product with queries does while the diagonal blocks are inverted.
  __device__ __forceinline__ void prepare(Products& A, int n) const {
    const uint32_t q = base() + Places::q + Ring<kQuerySlots>::slot(n) * 2 * kTileBytes,
                   square = base() + Ring<kSquareSlots>::slot(n) * kTileBytes;
    const float* const vectors = Places::vectors_of(memory, n);
    const Squares<kGates> squares{vectors + kBeta * kChunk,
                                  vectors + kLog * kChunk,
                                  vectors + kLeft * kChunk,
                                  {base() + Places::blocks + n % 2 * kBlocksBytes},
                                  reinterpret_cast<float*>(memory + Places::diagonals)};
    barriers.queries.wait_filled(n);
    squares.put_L(A);
    Products reads;
    wgmma::fence();
    rows_by_rows<true, 128>(reads, q, key(n));
    wgmma::commit();
    squares.invert_diagonal();
    __syncwarp();
    if (lane == 0) barrier_arrive(barriers.blocks);
    wgmma::wait<0>();
    wgmma::hold(reads);
    barriers.queries.free(n);
    barriers.squares.wait_free(n);
    if (warp * 16 < kRows) put_P(squares, reads, n, square + Places::P);
    barriers.keys.free(n);
    start(A, min(n + 1, of.chunks - 1));
    barrier_wait(barriers.blocks, n % 2);
    squares.solve(square + Places::T);
    barriers.squares.filled(n);
    wgmma::wait<0>();
    wgmma::hold(A);
  }
  // Blocks above the diagonal of T stay zero.
  __device__ __forceinline__ void clear_T() const {
    for (int at = threadIdx.x % 128; at < kSquareSlots * kTileBytes / 16; at += 128)
      reinterpret_cast<uint4*>(memory + Places::T)[at] = make_uint4(0, 0, 0, 0);
    meet_group();
  }
  __device__ __forceinline__ void prepare_all() const {
    clear_T();
    if (of.chunks == 0) return;
    Products A;
    start(A, 0);
    wgmma::wait<0>();
    wgmma::hold(A);
    for (int n = 0; n < of.chunks; ++n) prepare(A, n);
  }
};

}  // namespace lrnn::kernels::cuda::fused
