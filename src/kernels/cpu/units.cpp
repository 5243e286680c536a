#include "kernels/cpu/units.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

namespace lrnn::kernels {

const Parallel serial{[](int64_t n, const Parallel::Body& body) {
  for (int64_t i = 0; i < n; ++i) body(i);
}};

namespace {

// Waking a second thread takes some ten microseconds, a few hundred thousand multiply-adds.
const Parallel& worth_waking(double work, int64_t pieces, const Parallel& parallel) {
  return work >= 3e5 && pieces > 1 ? parallel : serial;
}

// Longest first, so that threads which take the next unit when they are free end together.
std::vector<Unit> plan(const Units& units) {
  std::vector<Unit> list;
  list.reserve(units.S * units.heads);
  for (int64_t s = 0; s < units.S; ++s)
    for (int64_t h = 0; h < units.heads; ++h) list.push_back(units(s, h));
  if (units.cu_seqlens)
    std::stable_sort(list.begin(), list.end(),
                     [](const Unit& a, const Unit& b) { return a.length > b.length; });
  return list;
}

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

void run_pieces(int64_t n, double work, const Parallel& parallel, Each<int64_t> body) {
  worth_waking(work, n, parallel)(n, body);
}

void run_units(const Units& units, const Parallel& parallel, Each<const Unit&> body) {
  run_teams(units, parallel, [&](Team team) { body(team.units[0]); });
}

void run_teams(const Units& units, const Parallel& parallel, Each<Team> body) {
  const std::vector<Unit> list = plan(units);
  const Parallel& run = worth_waking(units.work, int64_t(list.size()), parallel);
  const size_t size = team_size(int64_t(list.size()), units.team, run.threads);
  std::vector<Team> teams;
  teams.reserve(list.size() / size + 1);
  for (size_t begin = 0, end; begin < list.size(); begin = end) {
    end = begin + 1;
    while (end < list.size() && end - begin < size && list[end].sequence == list[begin].sequence)
      ++end;
    teams.push_back({&list[begin], int64_t(end - begin)});
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
