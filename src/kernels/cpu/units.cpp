#include "kernels/cpu/units.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

namespace lrnn::kernels {

// Longest first, so that threads which take the next unit when they are free end together.
std::vector<Unit> plan_units(int64_t S, int64_t heads, int64_t T, const int64_t* cu_seqlens) {
  std::vector<Unit> list;
  list.reserve(S * heads);
  for (int64_t s = 0; s < S; ++s)
    for (int64_t h = 0; h < heads; ++h)
      list.push_back(cu_seqlens ? Unit{s, h, 0, cu_seqlens[s], cu_seqlens[s + 1] - cu_seqlens[s]}
                                : Unit{s, h, s, 0, T});
  if (cu_seqlens)
    std::stable_sort(list.begin(), list.end(),
                     [](const Unit& a, const Unit& b) { return a.length > b.length; });
  return list;
}

namespace {

// Waking a second thread takes some ten microseconds, a few hundred thousand multiply-adds.
bool worth_a_thread(double work, size_t pieces) { return work >= 3e5 && pieces > 1; }

// The largest team that no thread waits for longer than for single units.
int64_t team_size(int64_t units, int64_t most, int64_t threads) {
  const auto turns = [&](int64_t size) {
    const int64_t teams = (units + size - 1) / size;
    return (teams + threads - 1) / threads * size;
  };
  int64_t size = most;
  while (size > 1 && turns(size) > turns(1)) --size;
  return size;
}

}  // namespace

void run_units(const std::vector<Unit>& units, double work, const Parallel& parallel,
               const std::function<void(const Unit&)>& body) {
  run_teams(units, 1, work, parallel, [&](Team team) { body(team.units[0]); });
}

void run_teams(const std::vector<Unit>& units, int64_t most, double work, const Parallel& parallel,
               const std::function<void(Team)>& body) {
  const Parallel& run = worth_a_thread(work, units.size()) ? parallel : serial;
  const size_t size = team_size(int64_t(units.size()), most, run.threads);
  std::vector<Team> teams;
  teams.reserve(units.size() / size + 1);
  for (size_t begin = 0, end; begin < units.size(); begin = end) {
    end = begin + 1;
    while (end < units.size() && end - begin < size && units[end].sequence == units[begin].sequence)
      ++end;
    teams.push_back({&units[begin], int64_t(end - begin)});
  }
  run(int64_t(teams.size()), [&](int64_t i) { body(teams[i]); });
}

void* thread_scratch(size_t bytes) {
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  thread_local std::unique_ptr<void, Free> block;
  thread_local size_t size = 0;
  if (bytes > size) {
    block.reset();
    size = (bytes + 4095) / 4096 * 4096;
    block.reset(std::aligned_alloc(64, size));
    if (!block) {
      size = 0;
      throw std::bad_alloc();
    }
  }
  return block.get();
}

}  // namespace lrnn::kernels
