#pragma once
#include "kernels/cuda/diagonal/chunk_gradients_layout.cuh"

// The gradients of gated linear attention, all chunks at once, from the states S before them and
// the gradients G of the states after them (chunk.cuh). With dA = scale d_o v^T,
//
//   dq = scale p S d_o + sum over s of dA_ts k_s (decay s to t)
//   dk = r G v         + sum over t of dA_ts q_t (decay s to t)
//   dv = scale A^T d_o + (r k)^T G
//
// Pairs within 16 tokens are added up one by one, a key a thread. Of levels 16 and 32 the sums are
// one product y = M x, where M is dA and its transpose, of the pairs that are cut there: it gives
// readers what they need of dq, and what was written its dk, but for the decay to the middle, which
// x has, too.
//
// The gradient of a decay's logarithm is what passes through it: the pairs around it, one by one or
// as x_t y_t, which from the middle on is counted by what is read later in its half, before the
// middle by what was written earlier. All of it is added up in this form, without differences.
namespace lrnn::kernels::cuda::gla {

template <int kKeys> struct Chunk {
  using Shape = GlaShape<kKeys>;
  using At = Layout<kKeys>;
  using Keys = typename Shape::Keys;
  using State = typename Shape::State;
  using Values = typename Shape::Values;
  static constexpr int kBlocksOfA = kKeys == 64 ? 2 : 1;  // a warp's, of the ten of dA

  const DiagonalBackward& p;
  unsigned char* memory;
  const GlaChunk& at;
  GlaPlace<kKeys> on;
  GlaDecays decays;
  Tokens<kKeys> q, k;
  Sixteen dq, dk, slope;

  __device__ __forceinline__ Chunk(const DiagonalBackward& p_, unsigned char* memory_,
                                   const GlaChunk& at_)
      : p(p_), memory(memory_), at(at_) {
    const int own = on.block * kGlaBlock * Shape::Rows16::kStride + 2 * on.key;
    q.first = memory + At::q + own, k.first = memory + At::k + own;
  }

  __device__ __forceinline__ float* table(int which) const {
    return reinterpret_cast<float*>(memory + At::tables) + which * kGlaBlocks * kKeys;
  }
  __device__ __forceinline__ float* own(int which) const {
    return table(which) + on.block * kKeys + on.key;
  }
  __device__ __forceinline__ float* dA_at(int t, int s) const {
    return reinterpret_cast<float*>(memory + At::dA) + t * At::kDaStride + s;
  }
  __device__ __forceinline__ unsigned char* near_place() const {
    return memory + At::near + on.warp * At::kNear;
  }
  __device__ __forceinline__ GlaWhole<kKeys> whole() const { return {table(kWhole)}; }

  // Nothing made of these is worth a register until it is made again.
  __device__ __forceinline__ void forget() {
    const float* const from = reinterpret_cast<const float*>(memory + At::log_decay) + on.begin();
    asm volatile("" ::: "memory");
#pragma unroll
    for (int t = 0; t < kGlaBlock; ++t) decays.a[t] = from[t * kKeys];
  }

  __device__ __forceinline__ void load() {
    decays.load<kKeys>(reinterpret_cast<const float*>(memory + At::log_decay) + on.begin());
    float* const to = reinterpret_cast<float*>(memory + At::log_decay) + on.begin();
#pragma unroll
    for (int t = 0; t < kGlaBlock; ++t) to[t * kKeys] = decays.a[t];
    float whole = decays.a[0];
#pragma unroll
    for (int t = 1; t < kGlaBlock; ++t) whole *= decays.a[t];
    *own(kWhole) = whole;
  }

  // A warp's results, 32 keys of 16 tokens, to the threads of the keys.
  __device__ __forceinline__ void to_keys(Sixteen& to, const float (&y)[2][2][4]) const {
    constexpr int kStride = 20;
    static_assert(32 * kStride * 4 == At::kNear);
    float* const place = reinterpret_cast<float*>(near_place());
#pragma unroll
    for (int m = 0; m < 2; ++m)
#pragma unroll
      for (int n = 0; n < 2; ++n)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          *reinterpret_cast<float2*>(place + (16 * m + on.g + 8 * half) * kStride + 8 * n +
                                     2 * on.c) =
              make_float2(y[m][n][2 * half], y[m][n][2 * half + 1]);
    __syncwarp();
#pragma unroll
    for (int t = 0; t < kGlaBlock; t += 4) {
      const float4 four = *reinterpret_cast<const float4*>(place + on.lane * kStride + t);
      to[t] = four.x, to[t + 1] = four.y, to[t + 2] = four.z, to[t + 3] = four.w;
    }
    __syncwarp();
  }

  // This warp's blocks of 16 x 16 on and below the diagonal of A.
  template <class F> __device__ __forceinline__ void each_block_of_A(F&& f) const {
#pragma unroll
    for (int n = 0; n < kBlocksOfA; ++n) {
      const int i = on.warp + n * Shape::kWarps;
      if (i >= 10) continue;
      const int row = i < 1 ? 0 : i < 3 ? 1 : i < 6 ? 2 : 3;
      f(n, row, i - row * (row + 1) / 2);
    }
  }

  // Over a tile of columns: dA, S d_o, G v, and this warp's share of what S leaves in G, a key's
  // sum on the diagonal.
  __device__ __forceinline__ void add_values(Tile (&dA)[kBlocksOfA], float (&read)[2][2][4],
                                             float (&written)[2][2][4], Tile (&through)[2]) const {
    const Values d_o(memory + At::d_o), v(memory + At::v);
    const State S(memory + At::S), G(memory + At::G);
    each_block_of_A([&](int n, int row, int column) {
#pragma unroll
      for (int c = 0; c < kGlaColumns; c += 16)
        multiply(dA[n][0], dA[n][1], d_o.a_rows(16 * row, c), v.b_rows(c, 16 * column));
    });
    const int token = on.block * kGlaBlock, key = on.group * 32;
#pragma unroll
    for (int c = 0; c < kGlaColumns; c += 16) {
      const auto of_o = d_o.b_rows(c, token), of_v = v.b_rows(c, token);
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        const Fragment<2> s = S.a_rows(key + 16 * m, c), g = G.a_rows(key + 16 * m, c);
        multiply(read[m][0], read[m][1], s, of_o);
        multiply(written[m][0], written[m][1], g, of_v);
        if (c / 16 == on.block) {
          Fragment<2> right;  // G^T
#pragma unroll
          for (int part = 0; part < 2; ++part)
#pragma unroll
            for (int u = 0; u < 4; ++u) right.part[part][u] = g.part[part][u % 2 * 2 + u / 2];
          multiply_small_first<2>(through[m], s, right);
        }
      }
    }
  }

  __device__ __forceinline__ void share_dA(const Tile (&dA)[kBlocksOfA]) const {
    const float scale = float(p.scale);
    each_block_of_A([&](int n, int row, int column) {
#pragma unroll
      for (int t = 0; t < 2; ++t)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          *reinterpret_cast<float2*>(
              dA_at(16 * row + on.g + 8 * half, 16 * column + 8 * t + 2 * on.c)) =
              make_float2(scale * dA[n][t][2 * half], scale * dA[n][t][2 * half + 1]);
    });
  }
  __device__ __forceinline__ void share_through(const Tile (&through)[2]) const {
#pragma unroll
    for (int m = 0; m < 2; ++m)
      each([&](int t, int u, int row, int column) {
        if (row == column)
          table(kThrough)[on.block * kKeys + on.group * 32 + 16 * m + row] = through[m][t][u];
      });
  }

  // What reads the state and what is left in it.
  __device__ __forceinline__ void take_states(const float (&read)[2][2][4],
                                              const float (&written)[2][2][4]) {
    const GlaWhole<kKeys> of = whole();
    Sixteen f;
    forget();
    to_keys(dq, read), to_keys(dk, written);
    decays.from_begin(f);
    const float before = float(p.scale) * of.before(on.block, on.key);
    float sum = 0;
#pragma unroll
    for (int t = kGlaBlock - 1; t >= 0; --t) {
      dq[t] *= before * f[t];
      slope[t] = sum += dq[t] * q.at(t);
    }
    *own(kRead) = sum;
    decays.to_end(f);
    const float after = of.after(on.block, on.key);
    sum = 0;
#pragma unroll
    for (int t = 0; t < kGlaBlock; ++t) {
      dk[t] *= after * f[t];
      slope[t] += sum, sum += dk[t] * k.at(t);
    }
    *own(kWritten) = sum;
  }

  // Pairs within 16 tokens, one by one: the decay to token t of every earlier one is a running
  // product.
  __device__ __forceinline__ void add_near() {
    Sixteen key, decayed;
    forget();
#pragma unroll
    for (int t = 0; t < kGlaBlock; ++t) key[t] = k.at(t);
#pragma unroll
    for (int t = 0; t < kGlaBlock; ++t) {
      const float* const row = dA_at(on.block * kGlaBlock + t, on.block * kGlaBlock);
      const float query = q.at(t);
      float sum = 0;
#pragma unroll
      for (int s = 0; s < t; ++s) decayed[s] *= decays.a[t];
      decayed[t] = 1;
#pragma unroll
      for (int first = 0; first <= t; first += 4) {
        float x[4];
        load_four(row + first, x);
#pragma unroll
        for (int s = first; s <= t && s < first + 4; ++s) {
          const float slope_of = x[s - first] * decayed[s];
          sum += slope_of * key[s], dk[s] += slope_of * query;
          if (s < t) slope[s + 1] += sum * query;  // what passes through gates s+1 .. t
        }
      }
      dq[t] += sum;
    }
  }

  // x of level 16 kBit: blocks of readers, and of what they read.
  template <int kBit> __device__ __forceinline__ void put_cross(const Keys& to) {
    Sixteen f;
    forget();
    const bool reader = on.block & kBit;
    reader ? decays.from_begin(f) : decays.to_end(f);
    const float by = kBit == 2 ? whole().to_middle(on.block, on.key) : 1.f;
#pragma unroll
    for (int t = 0; t < kGlaBlock; ++t) f[t] *= by * (reader ? q.at(t) : k.at(t));
    put_tokens(to, on.key, on.block * kGlaBlock, f);
  }
  // What dA says of two blocks of tokens, as the operand from the other one to one's own.
  __device__ __forceinline__ Fragment<2> slopes(int other, bool reader) const {
    Fragment<2> f;
    const int o = other * kGlaBlock, t0 = on.block * kGlaBlock;
#pragma unroll
    for (int u = 0; u < 4; ++u) {
      const int n = t0 + on.g + u / 2 * 8, from = o + 2 * on.c + u % 2 * 8;
      if (reader) {
        const float2 x = *reinterpret_cast<const float2*>(dA_at(n, from));
        f.set(u, x.x, x.y);
      } else {
        f.set(u, *dA_at(from, n), *dA_at(from + 1, n));
      }
    }
    return f;
  }
  template <int kBit> __device__ __forceinline__ void cross(const Keys& x) {
    const bool reader = on.block & kBit;
    float sum[2][2][4] = {};
    const int first = kBit == 1 ? on.block ^ 1 : reader ? 0 : 2;
#pragma unroll
    for (int n = 0; n < kBit; ++n) {
      const auto right = slopes(first + n, reader);
#pragma unroll
      for (int m = 0; m < 2; ++m)
        multiply(sum[m][0], sum[m][1], x.a_rows(on.group * 32 + 16 * m, (first + n) * kGlaBlock),
                 right);
    }
    Sixteen f, y;
    to_keys(y, sum);
    forget();
    const float by = kBit == 2 ? whole().to_middle(on.block, on.key) : 1.f;
    float total = 0;
    if (reader) {
      decays.from_begin(f);
#pragma unroll
      for (int t = kGlaBlock - 1; t >= 0; --t) {
        y[t] *= by * f[t];
        dq[t] += y[t], slope[t] += total += y[t] * q.at(t);
      }
    } else {
      decays.to_end(f);
#pragma unroll
      for (int t = 0; t < kGlaBlock; ++t) {
        y[t] *= by * f[t];
        dk[t] += y[t], slope[t] += total, total += y[t] * k.at(t);
      }
    }
    if (kBit == 2) *own(kHalf) = total;
  }

  // dq, dk and the decay's to memory. From the other blocks: reads after this one, writes before.
  __device__ __forceinline__ void store() const {
    if (on.key >= p.K) return;
    float more = 0;
#pragma unroll
    for (int b = 0; b < kGlaBlocks; ++b) more += table(kThrough)[b * kKeys + on.key];
    more *= whole().before(kGlaBlocks - 1, on.key) * table(kWhole)[3 * kKeys + on.key];
#pragma unroll
    for (int b = 0; b < kGlaBlocks; ++b) {
      if (b > on.block) more += table(kRead)[b * kKeys + on.key];
      if (b < on.block) more += table(kWritten)[b * kKeys + on.key];
    }
    if (on.block == 1) more += table(kHalf)[on.key];
    if (on.block == 2) more += table(kHalf)[3 * kKeys + on.key];
    const int first = on.block * kGlaBlock, inside = at.count - first;
    if (inside <= 0) return;
    const auto place = [&](const Rows& rows) {
      return rows.data ? at.row(rows, first) + on.key : 0;
    };
    auto *to_q = static_cast<uint16_t*>(p.dq.data) + place(p.dq),
         *to_k = static_cast<uint16_t*>(p.dk.data) + place(p.dk);
    auto* to_decay = static_cast<float*>(p.dlog_decay.data) + place(p.dlog_decay);
#pragma unroll
    for (int t = 0; t < kGlaBlock; t += 2) {
      const uint32_t of_q = pack(dq[t], dq[t + 1]), of_k = pack(dk[t], dk[t + 1]);
#pragma unroll
      for (int u = 0; u < 2; ++u) {
        if (t + u < inside) {
          if (p.dq.data) *to_q = uint16_t(of_q >> (16 * u));
          *to_k = uint16_t(of_k >> (16 * u)), *to_decay = slope[t + u] + more;
        }
        to_q += p.dq.token, to_k += p.dk.token, to_decay += p.dlog_decay.token;
      }
    }
  }

  // A: the blocks on the diagonal as forward kept them, the others made again.
  __device__ __forceinline__ void fetch_near(const float* kept) const {
    for (int i = threadIdx.x; i < 256; i += Shape::kThreads)
      copy_async(shared_address(memory + At::pairs) + i * 16, kept + i * 4);
  }
  __device__ __forceinline__ void share_pairs(const Tile& crossing) const {
    const typename Shape::Pairs to(memory + At::A);
    if (on.warp < 6) {
      const GlaCross of(on.warp);
      put_pairs(to, crossing, of.row * kGlaBlock, of.column * kGlaBlock);
      return;
    }
    const float2* const near = reinterpret_cast<const float2*>(memory + At::pairs);
    for (int i = threadIdx.x - 6 * 32; i < 512; i += Shape::kThreads - 6 * 32)
      to.put(i / 8, i / 128 * 16 + i % 8 * 2, near[i].x, near[i].y);
  }
  __device__ __forceinline__ void put_written_keys(const Keys& to) {
    Sixteen f;
    forget();
    decays.to_end(f);
    const float after = whole().after(on.block, on.key);
#pragma unroll
    for (int t = 0; t < kGlaBlock; ++t) f[t] *= after * k.at(t);
    put_tokens(to, on.key, on.block * kGlaBlock, f);
  }

  // dv of a tile of columns into shared memory.
  __device__ __forceinline__ void value_gradients(const Keys& rk) const {
    constexpr int kN = 256 / Shape::kWarps / 8;
    const Values d_o(memory + At::d_o), out(memory + At::v);
    const State G(memory + At::G);
    const typename Shape::Pairs A(memory + At::A);
    const int row = on.warp % 4 * 16, column = on.warp / 4 * (kN * 8);
    float dv[kN][4] = {};
#pragma unroll
    for (int t = 0; t < kGlaTokens; t += 16) {
      if (t < row) continue;
      const auto a = A.a_columns(row, t);
#pragma unroll
      for (int n = 0; n < kN; n += 2)
        multiply(dv[n], dv[n + 1], a, d_o.b_columns(t, column + 8 * n));
    }
    const float scale = float(p.scale);
#pragma unroll
    for (int n = 0; n < kN; ++n)
#pragma unroll
      for (int u = 0; u < 4; ++u) dv[n][u] *= scale;
#pragma unroll
    for (int key = 0; key < kKeys; key += 16) {
      const auto a = rk.a_columns(row, key);
#pragma unroll
      for (int n = 0; n < kN; n += 2)
        multiply(dv[n], dv[n + 1], a, G.b_columns(key, column + 8 * n));
    }
#pragma unroll
    for (int n = 0; n < kN; ++n)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        out.put(row + on.g + 8 * half, column + 8 * n + 2 * on.c, dv[n][2 * half],
                dv[n][2 * half + 1]);
  }
};

}  // namespace lrnn::kernels::cuda::gla
