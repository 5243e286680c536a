#pragma once
#include <cstddef>
#include <functional>
#include <vector>

#include "kernels/parallel.h"
#include "kernels/types.h"

// How the recurrences are shared out: one unit is one head (or group of channels) of one sequence.
namespace lrnn::kernels {

struct Unit {
  int64_t sequence, head;
  int64_t batch, begin, length;  // where its tokens are
};

// All units of S sequences of length T, or of those packed end to end that cu_seqlens [S+1] bounds.
std::vector<Unit> plan_units(int64_t S, int64_t heads, int64_t T, const int64_t* cu_seqlens);

// Runs them all; on this thread alone when `work`, in multiply-adds, is not worth waking another.
void run_units(const std::vector<Unit>& units, double work, const Parallel& parallel,
               const std::function<void(const Unit&)>& body);

// The same by teams: heads of one sequence that one thread walks together, a stretch of tokens for
// each in turn. Their rows share pages, and with every head by itself a long sequence would be
// looked up in the page tables once per head. Never more than `most` in a team, and fewer where
// threads would wait for a large one.
struct Team {
  const Unit* units;
  int64_t size;
};
void run_teams(const std::vector<Unit>& units, int64_t most, double work, const Parallel& parallel,
               const std::function<void(Team)>& body);

// Scratch of this thread, 64-byte aligned, valid until the next call. Kept between calls because
// fresh pages cost more than the arithmetic of a short sequence.
void* thread_scratch(size_t bytes);

}  // namespace lrnn::kernels
