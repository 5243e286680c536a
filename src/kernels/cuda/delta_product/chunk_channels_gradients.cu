#include "kernels/cuda/delta_product/chunk_channels_gradients.cuh"

// What remains of the gradients once every dV and the state S before and its gradient G after each
// chunk are known, for all chunks at once, with gates of key channels. A is the decay from j to i,
// a vector over the channels, e the errors:
//
//   X_ij = scale beta_j dO_i.e_j  (j <= i)      E_ij = -beta_j dV_i.e_j  (j < i)
//   dq_i = scale a_i (dO S^T)_i + sum_j X_ij A_ij k_j
//   er_i = -a_i (dV S^T)_i + sum_j E_ij A_ij k_j
//   src_j = r_j beta_j (e G^T)_j + sum_i A_ij (X_ij q_i + E_ij k_i)
//   dk = er + src,   dbeta_i = dV_i.e_i / beta_i
//
// Pairs j < i are parted as in chunk_channels_prepare.cu: those across the middle of the chunk and
// of its halves are products of matrices, those within 16 micro-steps are added up channel by
// channel. A gate's gradient is what was written before it, or came with S, times what is read of
// that at it or after it, or leaves with G, added up in this form, without differences: of the
// pairs across a middle, gates before it are passed by what was written before them, gates after it
// by what is read from them on.
namespace lrnn::kernels::cuda {
namespace {

using namespace channels;

template <int KT, bool kSplit> struct Chunk : Gradients<KT, kSplit> {
  using Base = Gradients<KT, kSplit>;
  using Base::kTiles, Base::kXTiles, Base::p, Base::memory, Base::at, Base::g, Base::c, Base::row0,
      Base::own, Base::is_E, Base::across, Base::queries, Base::span, Base::h, Base::sums,
      Base::betas, Base::kOwn;
  using Stage = typename Base::Stage;
  using Values = typename Base::Values;
  using State = typename Base::State;
  using Pairs = typename Base::Pairs;
  using Decayed = typename Base::Decayed;
  using HalfDecayed = typename Base::HalfDecayed;
  using Acc = float[kTiles][4];

  // X or E, dQ += dO S^T, er += dV S^T and src += e G^T over a tile of value channels.
  __device__ __forceinline__ void add_values(unsigned char* here, float (&x)[kXTiles][4], Acc& dq,
                                             Acc& er, Acc& src) const {
    const typename Base::Read d_o(here + Stage::d_o);
    const Values dv(here + Stage::dv), e(here + Stage::e);
    const State S(here + Stage::S), G(here + Stage::G);
#pragma unroll 1
    for (int v = 0; v < Base::kColumns; v += 16) {
      const auto own_dv = dv.a_rows(row0, v);
      Fragment<1> own_do = {};
      if (p.q.data) own_do = d_o.a_rows(row0, v);
      if (is_E) {
#pragma unroll
        for (int n = 0; n < kXTiles; n += 2)
          multiply(x[n], x[n + 1], own_dv, e.b_rows(v, across + n * 8));
      } else if (p.q.data) {
#pragma unroll
        for (int n = 0; n < kXTiles; n += 2)
          multiply(x[n], x[n + 1], own_do, e.b_rows(v, across + n * 8));
      }
#pragma unroll
      for (int n = 0; n < kTiles; n += 2) {
        const auto before = S.b_columns(v, own + n * 8);
        if (p.q.data) multiply(dq[n], dq[n + 1], own_do, before);
        multiply(er[n], er[n + 1], own_dv, before);
      }
      const auto own_e = e.a_rows(row0, v);
#pragma unroll
      for (int n = 0; n < kTiles; n += 2)
        multiply(src[n], src[n + 1], own_e, G.b_columns(v, own + n * 8));
    }
  }
  // The rows of S G, this thread's share of a channel.
  __device__ __forceinline__ float ends(unsigned char* here) const {
    constexpr int kEach = Base::kThreads / KT;
    const int channel = threadIdx.x % KT, even = channel & ~1;
    const State S(here + Stage::S), G(here + Stage::G);
    float sum = 0;
    for (int v = threadIdx.x / KT; v < Base::kColumns; v += kEach) {
      const float2 s = S.get(v, even), d = G.get(v, even);
      sum += channel & 1 ? s.y * d.y : s.x * d.x;
    }
    return sum;
  }

  // X and E with their factors to shared memory, and dbeta, the diagonal of E.
  __device__ __forceinline__ void share_pairs(const float (&x)[kXTiles][4]) const {
    const Pairs to(memory + (is_E ? Base::E : Base::X));
    auto& near = this->template in<typename Base::Near>(is_E ? Base::near_E : Base::near_X);
    const float factor = is_E ? -1.f : float(p.scale);
#pragma unroll
    for (int t = 0; t < kXTiles; ++t)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int i = row0 + g + half * 8, j = across + t * 8 + 2 * c;
        float y[2];
#pragma unroll
        for (int u = 0; u < 2; ++u) {
          const float value = x[t][2 * half + u], beta = betas()[j + u];
          y[u] = j + u < i || (j + u == i && !is_E) ? factor * beta * value : 0.f;
          if (is_E && j + u == i && i < at.count)
            static_cast<float*>(
                p.dbeta)[((span.b * p.T + span.t0) * p.N + at.first + i) * p.H + h] = value / beta;
          if (j / 16 == i / 16) near[i / 16][i % 16][(j + u) % 16] = y[u];
        }
        to.put(i, j, y[0], y[1]);
      }
  }

  // Tiles 2 n and 2 n + 1 of a warp: from dO S^T, dV S^T and e G^T to all but the pairs within 16
  // micro-steps. Afterwards dq, er and src hold dq, dk and what reads have of writes before this
  // block; out what its writes left for reads after it.
  __device__ __forceinline__ void add_pairs(int n, Acc& dq, Acc& er, Acc& src, Acc& out) const {
    const int block = row0 / 16, channel0 = own + n * 16;
    const typename Base::Keys keys(memory + Base::k), reads(memory + Base::q);
    auto& totals = this->template in<typename Base::Totals>(Base::totals);
    const auto each_pair = [&](auto&& f) {
#pragma unroll
      for (int t = 0; t < 2; ++t)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int i = row0 + g + half * 8, channel = channel0 + t * 8 + 2 * c;
          f(2 * n + t, t, 2 * half, i, channel, keys.get(i, channel), reads.get(i, channel));
        }
    };
    // Sums of a block's rows, by column.
    const auto total = [&](float(&x)[2][2], float(&to)[KT]) {
#pragma unroll
      for (int t = 0; t < 2; ++t)
#pragma unroll
        for (int u = 0; u < 2; ++u) {
          float y = x[t][u];
#pragma unroll
          for (int d = 4; d < 32; d *= 2) y += __shfl_xor_sync(0xffffffffu, y, d);
          if (g == 0) to[channel0 + t * 8 + 2 * c + u] = y;
        }
    };
    float in_sum[2][2] = {}, out_sum[2][2] = {};
    const float scale = float(p.scale);
    each_pair([&](int at_tile, int t, int u, int i, int channel, float2 k, float2 q) {
      const float2 s = pair_at(&sums()[i + 1][channel]), end = pair_at(&sums()[kChunk][channel]);
      const float2 a = decay(s, make_float2(0, 0)), r = decay(end, s);
      const float beta = betas()[i];
      const auto one = [&](int e, float a_, float r_, float k_, float q_) {
        const float read = scale * a_ * dq[at_tile][u + e], error = -a_ * er[at_tile][u + e],
                    written = r_ * beta * src[at_tile][u + e];
        const float in = q_ * read + k_ * error, left = k_ * written;
        in_sum[t][e] += in, out_sum[t][e] += left;
        dq[at_tile][u + e] = read, er[at_tile][u + e] = error + written;
        src[at_tile][u + e] = in, out[at_tile][u + e] = left;
      };
      one(0, a.x, r.x, k.x, q.x), one(1, a.y, r.y, k.y, q.y);
    });
    total(in_sum, totals.in[block]), total(out_sum, totals.out[block]);

    const Pairs X(memory + Base::X), E(memory + Base::E);
    // Pairs of this block across the middle of a piece, with `count` blocks from `other` on.
    const auto cross = [&](int piece, int other, int count, int k_at, int q_at, bool reader) {
      const Decayed k_rows(memory + k_at);
      const HalfDecayed q_rows(memory + q_at);
      float of_q[2][4] = {}, of_k[2][4] = {};
      for (int m = other; m < other + count; ++m) {
        if (reader) {
          const auto right = k_rows.b_columns(m * 16, channel0);
          if (p.q.data) multiply(of_q[0], of_q[1], X.a_rows(row0, m * 16), right);
          multiply(of_k[0], of_k[1], E.a_rows(row0, m * 16), right);
        } else {
          multiply(of_k[0], of_k[1], E.a_columns(row0, m * 16), k_rows.b_columns(m * 16, channel0));
          const int row = m * 16 / piece * (piece / 2) + m * 16 % (piece / 2);
          if (p.q.data)
            multiply(of_k[0], of_k[1], X.a_columns(row0, m * 16), q_rows.b_columns(row, channel0));
        }
      }
      float sum[2][2] = {};
      each_pair([&](int at_tile, int t, int u, int i, int channel, float2 k, float2 q) {
        const float2 f = this->from_middle(i, piece, channel);
        const auto one = [&](int e, float f_, float k_, float q_) {
          const float with_q = f_ * of_q[t][u + e], with_k = f_ * of_k[t][u + e];
          const float flow = k_ * with_k + (reader ? q_ * with_q : 0.f);
          if (reader) dq[at_tile][u + e] += with_q;
          er[at_tile][u + e] += with_k;
          src[at_tile][u + e] += reader ? flow : 0.f;
          out[at_tile][u + e] += reader ? 0.f : flow;
          sum[t][e] += flow;
        };
        one(0, f.x, k.x, q.x), one(1, f.y, k.y, q.y);
      });
      if (piece == kChunk && (block == 0 || block == 3)) total(sum, totals.across[block / 3]);
    };
    cross(64, block < 2 ? 2 : 0, 2, Base::k32, Base::q32, block >= 2);
    cross(32, block ^ 1, 1, Base::k16, Base::q16, block & 1);
  }

  __device__ __forceinline__ void share_results(const Acc& dq, const Acc& dk, const Acc& in,
                                                const Acc& out) const {
    using Results = typename Base::Result[Base::kResults];
    auto& to = this->template in<Results>(Base::stages);
#pragma unroll
    for (int t = 0; t < kTiles; ++t)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int i = row0 + g + half * 8, channel = own + t * 8 + 2 * c;
        const auto put = [&](int kind, const Acc& x) {
          *reinterpret_cast<float2*>(&to[kind][i][channel]) =
              make_float2(x[t][2 * half], x[t][2 * half + 1]);
        };
        put(Base::kDq, dq), put(Base::kDk, dk), put(Base::kIn, in), put(Base::kOut, out);
      }
  }

  // One channel of 16 micro-steps, a thread: the pairs within them, and all gradients to memory.
  __device__ __forceinline__ void finish() const {
    const int channel = threadIdx.x % KT, block = threadIdx.x / KT, first = block * 16;
    if (block >= 4) return;
    using Results = typename Base::Result[Base::kResults];
    const auto& results = this->template in<Results>(Base::stages);
    const auto& totals = this->template in<typename Base::Totals>(Base::totals);
    const auto& X = this->template in<typename Base::Near>(Base::near_X)[block];
    const auto& E = this->template in<typename Base::Near>(Base::near_E)[block];
    const auto element = [&](int rows, int i) {
      return load<float, Bf16>(memory + rows + i * row_bytes(KT), channel);
    };
    const bool inside = channel < p.K;
    auto* const to_q =
        static_cast<uint16_t*>(p.dq.data) + (p.dq.data ? this->query_row(p.dq) + channel : 0);
    float k[16], dk[16], decayed[16], slope[16];
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      k[i] = element(Base::k, first + i), dk[i] = results[Base::kDk][first + i][channel];
      slope[i] = 0;
    }
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const float gate = fast_exp(sums()[first + i + 1][channel] - sums()[first + i][channel]);
      const float q = element(Base::q, first + i);
      float dq = results[Base::kDq][first + i][channel], er = 0, before = 0;
#pragma unroll
      for (int j = 0; j < i; ++j) decayed[j] *= gate;
      decayed[i] = 1;
#pragma unroll
      for (int j = 0; j <= i; j += 4) {
        float x[4], e[4];
        load_four(&X[i][j], x), load_four(&E[i][j], e);
#pragma unroll
        for (int u = 0; u < 4; ++u) {
          if (j + u > i) continue;
          const float written = decayed[j + u] * k[j + u], of = x[u] * q + e[u] * k[i];
          dq += x[u] * written, er += e[u] * written;
          dk[j + u] += decayed[j + u] * of;
          if (j + u == i) continue;
          before += written * of;
          slope[j + u + 1] += before;
        }
      }
      dk[i] += er;
      const int r = queries.row(first + i);
      if (r >= 0 && p.dq.data && inside) to_q[r * p.dq.token] = to_bf16(dq);
    }
    auto* const to_k = static_cast<uint16_t*>(p.dk.data) + this->step_row(p.dk) + channel;
#pragma unroll
    for (int i = 0; i < 16; ++i)
      if (first + i < at.count && inside) to_k[(first + i) * p.dk.step] = to_bf16(dk[i]);
    if (!p.dlog_gate) return;
    // What passes all gates of this block, what reads from each gate on have of writes before this
    // block, and what writes before each gate left for reads after it.
    float through = 0;
#pragma unroll
    for (int n = 0; n < Base::kThreads / KT; ++n) through += totals.ends[n][channel];
    through *= fast_exp(sums()[kChunk][channel]);
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      if (n > block) through += totals.in[n][channel];
      if (n < block) through += totals.out[n][channel];
    }
    if (block == 1 || block == 2) through += totals.across[block - 1][channel];
    float later = 0, earlier = through;
#pragma unroll
    for (int i = 15; i >= 0; --i) slope[i] += later += results[Base::kIn][first + i][channel];
    const int N = int(p.N);
    const int64_t token = uint32_t(at.first) / uint32_t(N);
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const int since = first + i + int(at.first - token * N), tokens = since / N;
      if (first + i < at.count && tokens * N == since && inside)
        static_cast<float*>(
            p.dlog_gate)[((span.b * p.T + span.t0 + token + tokens) * p.H + h) * p.K + channel] =
            slope[i] + earlier;
      earlier += results[Base::kOut][first + i][channel];
    }
  }
};

template <int KT, bool kSplit>
__global__ void __launch_bounds__(512, 1)
    sum_channel_gradients(DeltaProductBackward p, ChannelChunks w) {
  extern __shared__ __align__(16) unsigned char memory[];
  const Slot at = slot_of(p, blockIdx.x / unsigned(p.H), kChunk);
  if (at.count == 0) return;
  using Run = Chunk<KT, kSplit>;
  const Run run{{p, w, memory, at}};
  const int tiles = int((p.V + Run::kColumns - 1) / Run::kColumns);
  run.fetch_keys(static_cast<const unsigned char*>(w.work) +
                 int64_t(blockIdx.x) * Record<KT, kSplit>::kBytes);
  run.fetch_values(0);
  copy_commit();
  fill_sums<KT>(run.template in<Sums<KT>>(Run::sum), p, run.span, at, run.h);
  float x[Run::kXTiles][4] = {}, ends = 0;
  typename Run::Acc dq = {}, er = {}, src = {}, out;
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles) run.fetch_values(tile + 1);
    copy_commit();
    copy_wait<1>();
    __syncthreads();
    run.add_values(run.stage(tile), x, dq, er, src);
    ends += run.ends(run.stage(tile));
    __syncthreads();
  }
  run.template in<typename Run::Totals>(Run::totals).ends[threadIdx.x / KT][threadIdx.x % KT] =
      ends;
  run.share_pairs(x);
  run.decay_keys();
  __syncthreads();
#pragma unroll
  for (int n = 0; n < Run::kTiles / 2; ++n) run.add_pairs(n, dq, er, src, out);
  __syncthreads();
  run.share_results(dq, er, src, out);
  __syncthreads();
  run.finish();
}

}  // namespace

void channel_gradients(const DeltaProductBackward& p, const ChannelChunks& w, void* stream) {
  const int64_t blocks = chunk_slots(p, kChunk) * p.H;
  if (blocks == 0) return;
  with_record(p, w.split, [&]<int KT, bool kSplit>() {
    constexpr int kBytes = Gradients<KT, kSplit>::bytes;
    auto* kernel = sum_channel_gradients<KT, kSplit>;
    allow_shared(kernel, kBytes);
    kernel<<<unsigned(blocks), 512, kBytes, static_cast<cudaStream_t>(stream)>>>(p, w);
  });
  check_launch("delta_product");
}

}  // namespace lrnn::kernels::cuda
