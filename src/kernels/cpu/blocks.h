#pragma once
#include "kernels/cpu/units.h"
#include "kernels/cpu/vec.h"

// What the recurrences with a matrix for a state share: rows of a unit, blocks of columns, scratch.
namespace lrnn::kernels::LRNN_ISA {
namespace {

// A row stride of an odd number of cache lines, so that the rows of a column block fall into
// different sets of the L1 cache.
template <class F> int64_t padded(int64_t n) {
  constexpr int64_t line = 64 / int64_t(sizeof(F));
  return ((n + line - 1) / line | 1) * line;
}
template <class F> int64_t vectors(int64_t n) { return (n + kLanes<F> - 1) / kLanes<F>; }

// Calls body with a column block's first column and its width in vectors as a constant.
template <class F, class Body> void for_each_block(int64_t V, Body body) {
  int64_t n = 0;
  const int64_t total = vectors<F>(V);
  for (; n + 4 <= total; n += 4) body(n * kLanes<F>, std::integral_constant<int, 4>());
  for (; n + 2 <= total; n += 2) body(n * kLanes<F>, std::integral_constant<int, 2>());
  for (; n < total; ++n) body(n * kLanes<F>, std::integral_constant<int, 1>());
}

// Calls body with a value of the type that is computed in and one of the type that is read and
// written.
template <class Body> void by_type(Type type, Body body) {
  switch (type) {
    case Type::kFloat32: return body(float(), float());
    case Type::kFloat64: return body(double(), double());
    case Type::kBFloat16: return body(float(), Bf16());
  }
}

template <class T> T* row_of(const Rows& rows, const Unit& u, int64_t token, int64_t step) {
  return static_cast<T*>(rows.data) + u.batch * rows.batch + (u.begin + token) * rows.token +
         step * rows.step + u.head * rows.head;
}

template <class T> T* row_of(const SharedRows& rows, const Unit& u, int64_t token, int64_t step) {
  const auto head = int64_t((2 * uint64_t(u.head) + 1) * rows.inverse >> 32);
  return static_cast<T*>(rows.data) + u.batch * rows.batch + (u.begin + token) * rows.token +
         step * rows.step + head * rows.head;
}

// The rows of one head lie a token apart: too far for the processor to guess the next, and on a
// long sequence every one would wait for memory.
template <class T> [[gnu::always_inline]] inline void prefetch_row(const T* row, int64_t n) {
  for (int64_t at = 0; at < n; at += 64 / int64_t(sizeof(T))) __builtin_prefetch(row + at);
}
template <class T> [[gnu::always_inline]] inline void prefetch_to_write(T* row, int64_t n) {
  for (int64_t at = 0; at < n; at += 64 / int64_t(sizeof(T))) __builtin_prefetch(row + at, 1);
}

// Far enough ahead for one pass over a state of 32 x 32, the quickest that matters, to hide a read
// from memory.
inline constexpr int64_t kPrefetchTokens = 2;

// Decayed states reach denormals, on which some machines are a hundred times slower. Flushes them
// to zero while it lives.
class FlushDenormals {
 public:
#if defined(__SSE2__)
  FlushDenormals() : saved_(_mm_getcsr()) { _mm_setcsr(saved_ | 0x8040); }
  ~FlushDenormals() { _mm_setcsr(saved_); }

 private:
  unsigned saved_;
#elif defined(__aarch64__)
  FlushDenormals() {
    asm volatile("mrs %0, fpcr" : "=r"(saved_));
    asm volatile("msr fpcr, %0" : : "r"(saved_ | 1u << 24) : "memory");
  }
  ~FlushDenormals() { asm volatile("msr fpcr, %0" : : "r"(saved_) : "memory"); }

 private:
  uint64_t saved_;
#else
  FlushDenormals() {}
#endif
};

// A sequential allocator; with a null base it only counts.
struct Bump {
  char* base;
  size_t used = 0;
  template <class F> F* take(int64_t n) {
    F* const p = base ? reinterpret_cast<F*>(base + used) : nullptr;
    used += (size_t(n) * sizeof(F) + 63) / 64 * 64;
    return p;
  }
  // All that was taken so far.
  void clear() const {
    if (base) std::memset(base, 0, used);
  }
};

// Makes a Which of the thread's scratch and runs it: its constructor takes what it needs from a
// Bump, once to be counted and once to have it.
template <class Which, class Problem, class Piece>
void run_on_scratch(const Problem& p, const Piece& piece) {
  const FlushDenormals flush;
  Bump count{nullptr};
  Which(p, piece, count);
  Bump bump{static_cast<char*>(thread_scratch(count.used))};
  Which(p, piece, bump).run();
}

// f(begin, length) for the chunks of a sequence, from the last.
template <class F> void chunks_from_the_end(int64_t length, int64_t chunk, F f) {
  for (int64_t end = length; end > 0;) {
    const int64_t begin = (end - 1) / chunk * chunk;
    f(begin, end - begin);
    end = begin;
  }
}

// The compiler makes vectors of the conversions by itself, and wastes fewer on short rows.
template <class F, class IO> inline void read_row(const IO* in, int64_t n, F* out) {
  int64_t i = 0;
  if constexpr (std::is_same_v<F, IO>)
    for (; i + kLanes<F> <= n; i += kLanes<F>) store(out + i, load(in + i));
  for (; i < n; ++i) out[i] = widen<F>(in[i]);
}
template <class F, class IO> inline void write_row(const F* in, int64_t n, IO* out) {
  int64_t i = 0;
  if constexpr (std::is_same_v<F, IO>)
    for (; i + kLanes<F> <= n; i += kLanes<F>) store(out + i, load(in + i));
  for (; i < n; ++i) out[i] = narrow<IO>(in[i]);
}
// out = factor * in over a multiple of the lanes.
template <class F> inline void scale_row(F factor, const F* in, int64_t n, F* out) {
  for (int64_t i = 0; i < n; i += kLanes<F>) store(out + i, factor * load(in + i));
}

// Rows as F: in place where the type is already F, otherwise converted into one of four buffers.
template <class F, class IO> struct Reader {
  F* buffer;
  int64_t n;
  const F* operator()(const IO* row, int64_t which) const {
    if constexpr (std::is_same_v<F, IO>) {
      return row;
    } else {
      F* const out = buffer + (which & 3) * padded<F>(n);
      read_row(row, n, out);
      return out;
    }
  }
};

template <class F, int NV, class IO>
[[gnu::always_inline]] inline void load_block(const IO* in, int64_t n, Vec<F> (&out)[NV]) {
  constexpr int W = kLanes<F>;
  if (n == NV * W) {
    for (int i = 0; i < NV; ++i) out[i] = load(in + i * W);
    return;
  }
  alignas(64) F row[NV * W] = {};
  read_row(in, n, row);
  for (int i = 0; i < NV; ++i) out[i] = load(row + i * W);
}

template <class F, int NV, class IO>
[[gnu::always_inline]] inline void store_block(const Vec<F> (&in)[NV], int64_t n, IO* out) {
  constexpr int W = kLanes<F>;
  if (n == NV * W) {
    for (int i = 0; i < NV; ++i) store(out + i * W, in[i]);
    return;
  }
  alignas(64) F row[NV * W];
  for (int i = 0; i < NV; ++i) store(row + i * W, in[i]);
  write_row(row, n, out);
}

// Of rows in place, whose padding nobody knows.
template <class F> inline F dot_rows(const F* a, const F* b, int64_t n) {
  Vec<F> sums{};
  F rest = 0;
  int64_t i = 0;
  for (; i + kLanes<F> <= n; i += kLanes<F>) sums = fma<F>(load(a + i), load(b + i), sums);
  for (; i < n; ++i) rest += a[i] * b[i];
  return sum<F>(sums) + rest;
}

template <class F>
void copy_matrix(const F* in, int64_t in_row, int64_t rows, int64_t columns, F* out,
                 int64_t out_row) {
  for (int64_t i = 0; i < rows; ++i)
    std::memcpy(out + i * out_row, in + i * in_row, size_t(columns) * sizeof(F));
}

// A Which for every head, at `cost` multiply-adds for a token and one of `size` elements of the
// state.
template <class Which, class Problem>
void run_heads(const Problem& p, int64_t size, double cost, const Parallel& parallel) {
  const double work = cost * double(p.B * p.T * p.H) * double(size + 256);
  run_units({p.S, p.H, p.T, p.cu_seqlens, work}, parallel,
            [&](const Unit& u) { run_on_scratch<Which>(p, u); });
}

}  // namespace
}  // namespace lrnn::kernels::LRNN_ISA
