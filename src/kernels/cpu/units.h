#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/dispatch.h"
#include "kernels/types.h"

// How the recurrences are shared out: one unit is one head (or group of channels) of one sequence.
namespace lrnn::kernels {

struct Unit {
  int64_t sequence, head;
  int64_t batch, begin, length;  // where its tokens are
};

// The units of S sequences of length T, or of those packed end to end that cu_seqlens [S+1] bounds.
struct Units {
  int64_t S, heads, T;
  const int64_t* cu_seqlens;
  double work;       // of all, in multiply-adds
  int64_t team = 1;  // the largest, see below

  Unit operator()(int64_t sequence, int64_t head) const {
    if (!cu_seqlens) return {sequence, head, sequence, 0, T};
    const int64_t begin = cu_seqlens[sequence];
    return {sequence, head, 0, begin, cu_seqlens[sequence + 1] - begin};
  }
};

// Heads of one sequence that one thread walks together, a stretch of tokens for each in turn. Their
// rows share pages, and with every head by itself a long sequence would be looked up in the page
// tables once per head.
struct Team {
  const Unit* units;
  int64_t size;
};

// What is to be done with each, for as long as the call lasts. Not std::function: its own functions
// would be compiled by every instruction set, and the linker would keep any of them for all.
template <class Piece> class Each {
 public:
  template <class Body>
  Each(const Body& body)
      : body_(&body),
        call_([](const void* b, Piece piece) { (*static_cast<const Body*>(b))(piece); }) {}
  void operator()(Piece piece) const { call_(body_, piece); }

 private:
  const void* body_;
  void (*call_)(const void*, Piece);
};

// Run them all; on this thread alone when the work is not worth waking another. Teams are smaller
// than asked for where threads would wait for a large one.
void run_units(const Units& units, const Parallel& parallel, Each<const Unit&> body);
void run_teams(const Units& units, const Parallel& parallel, Each<Team> body);
void run_pieces(int64_t n, double work, const Parallel& parallel, Each<int64_t> body);

// Scratch of this thread, 64-byte aligned, valid until the next call. Kept between calls because
// fresh pages cost more than the arithmetic of a short sequence.
void* thread_scratch(size_t bytes);

}  // namespace lrnn::kernels
