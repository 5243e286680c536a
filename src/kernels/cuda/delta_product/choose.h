#pragma once
#include <algorithm>
#include <string_view>

#include "kernels/cuda/delta_product/chunk.h"
#include "kernels/cuda/delta_product/chunk_channels.h"
#include "kernels/cuda/delta_product/delta_product.h"

// Which kernel when: the one place that decides.
namespace lrnn::kernels::cuda {

enum class Method : uint8_t {
  kExact,
  kSmall,
  kSmallChunks,
  kOneChunk,
  kAccurate,
  kFast,
  kAccurateChannels,  // with a gate per key channel
  kFastChannels
};

// Micro-steps of a sequence: a chunk costs the same however few it holds.
inline int64_t steps_of(const DeltaProductInputs& p) {
  return p.S > 0 ? (p.cu_seqlens ? p.T / p.S : p.T) * p.N : 0;
}

inline Method choose_for_channels(const DeltaProductInputs& p, std::string_view precision) {
  if (precision == "exact" || steps_of(p) <= 32 || !channel_chunk_fits(p)) return Method::kExact;
  return precision == "fast" ? Method::kFastChannels : Method::kAccurateChannels;
}

// `precision` as in ops/delta_product/delta_product.h: the least that will do. A gate of a head
// changes nothing: one of 1 forgets as little as none.
inline Method choose(const DeltaProductInputs& p, std::string_view precision) {
  if (p.channels) return choose_for_channels(p, precision);
  const Method exact = small_fits(p) ? Method::kSmall : Method::kExact;
  if (p.type != Type::kBFloat16 || precision == "exact") return exact;
  const bool fast = precision == "fast";
  const int64_t steps = steps_of(p);
  // With a warp for every scheduler of the chip nothing is faster for small heads than a warp each,
  // and its chunks are accurate whatever was asked for.
  if (exact == Method::kSmall && p.S * p.H >= 512 && steps > 16) return Method::kSmallChunks;
  // A sequence that is one chunk needs no state between chunks.
  if (exact == Method::kExact && !fast && steps > 16 && one_chunk_fits(p)) return Method::kOneChunk;
  if (!chunk_fits(p, !fast) || steps <= (p.K <= 64 && p.V <= 64 ? 64 : 32)) return exact;
  // With fewer small heads the recurrence is more accurate than chunks of 64, at up to a third of a
  // millisecond for this many micro-steps.
  if (exact == Method::kSmall && !fast && steps <= 1024) return exact;
  return fast ? Method::kFast : Method::kAccurate;
}

// Into how many segments a sequence is cut. The cost is in tenths of a microsecond, forward and
// backward together, as an H200 takes them: a chunk of a sweep 3.6 in either direction where all
// processors walk, one of a map of 128 columns 1.4, of the map of a gradient 2.8, a step from
// segment to segment 2. Where half as wide blocks still fit at once, the sweeps take those, and
// three quarters of the time. The first segment is walked beside the maps; so it is shorter. Packed
// sequences are cut as if they were one, if there are few. Backward must choose as forward did, so
// nothing but sizes may enter, and a gate of 1 must give the bits of no gate, so neither may that:
// with one a shorter first segment would be faster, for maps begin late (hopper_map.cuh).
inline Segments choose_segments(const DeltaProductInputs& p, int processors) {
  Segments best;
  const int64_t sequences = p.cu_seqlens ? 1 : p.S, tiles = (p.V + 127) / 128,
                heads = sequences * p.H * tiles, chunks = (p.T * p.N + 63) / 64;
  if (!hopper_fits(p) || p.S * p.H == 0) return best;
  if (p.cu_seqlens && 4 * p.S * p.H >= 3 * processors) return best;
  const auto turns = [&](int64_t blocks, int64_t each, int64_t weight) {
    if (2 * blocks <= processors) weight = weight * 3 / 4;
    return (blocks + processors - 1) / processors * each * weight;
  };
  int64_t least = turns(heads, chunks, 36 + 36) * 8 / 10;
  for (int64_t count = 3; count <= 64 && count * 8 <= chunks; ++count) {
    if (heads >= processors) break;
    const int64_t free = processors - heads,
                  rounds = (heads * (count - 2) * 2 + free - 1) / free;  // of maps
    const double share = rounds < 2 ? 0.5 : 0.85;                        // of the first segment
    const auto each = int64_t(double(chunks) / (double(count - 1) + share)) + 1;
    const int64_t first =
        std::max({int64_t(1), int64_t(share * double(each)), chunks - (count - 1) * each});
    if (first + (count - 2) * each >= chunks) continue;
    const int64_t walks = heads * (count - 1);
    const int64_t begin = std::max(turns(heads, first, 36), rounds * each * 14);
    const int64_t cost = begin + turns(walks, each, 36 + 28 + 36) + 40 * (count - 2) + 150;
    if (cost >= least) continue;
    least = cost, best.count = int(count), best.chunks = int(each);
    best.first = p.cu_seqlens ? best.chunks : int(first);
  }
  return best;
}

// Whether forward is one kernel (hopper_fused.cu), with the bits of two. It is a block a head, and
// a chunk takes one block as long as many: with half as many heads as processors two kernels are
// faster. So they are with gates and four micro-steps a token, where the group that prepares has
// the longest way.
inline bool choose_fused(const DeltaProductInputs& p, Method method, const Segments& segments,
                         int processors) {
  return method == Method::kFast && segments.chunks == 0 && 4 * p.S * p.H >= 3 * processors &&
         !(p.log_gate && p.N > 2) && p.q.data && p.K == 128 && p.V == 128 && hopper_fits(p);
}

}  // namespace lrnn::kernels::cuda
