#include <algorithm>
#include <bit>
#include <map>
#include <unordered_map>

#include "automata/cascade/cascade.h"
#include "base/error.h"

// From an automaton to the tables of its cascade: the image sets, which of them words map onto each
// other, the tiles of one set per class, and the tiles of the others by a word that leads there.
namespace lrnn::automata {

class Holonomy {
 public:
  using Bits = Cascade::Bits;
  explicit Holonomy(Cascade& out) : out_(out), a_(out.automaton_) {}

  void fill() {
    find_images();
    find_classes();
    for (size_t c = 0; c < out_.classes_.size(); ++c) spread_tiles(c);
    number_levels();
    for (size_t c = 0; c < out_.classes_.size(); ++c) find_generators(c);
  }

 private:
  static constexpr int64_t kMostWork = 400000000;

  std::vector<ImageSet>& sets() { return out_.sets_; }
  ImageSet& set(int64_t i) { return out_.sets_[static_cast<size_t>(i)]; }
  int64_t image(int64_t i, int64_t x) const { return out_.image(i, x); }
  size_t words() const { return (static_cast<size_t>(a_.states) + 63) / 64; }

  static bool inside(const Bits& small, const Bits& large) {
    for (size_t w = 0; w < small.size(); ++w)
      if (small[w] & ~large[w]) return false;
    return true;
  }
  // As one number with the last state as its highest digit.
  static bool lower(const Bits& p, const Bits& q) {
    return std::lexicographical_compare(p.rbegin(), p.rend(), q.rbegin(), q.rend());
  }

  std::vector<int> points(const Bits& bits) const {
    std::vector<int> out;
    for (size_t w = 0; w < bits.size(); ++w)
      for (uint64_t b = bits[w]; b; b &= b - 1)
        out.push_back(static_cast<int>(w * 64) + std::countr_zero(b));
    return out;
  }
  Bits bits_of(const std::vector<int>& points) const {
    Bits out(words(), 0);
    for (const int s : points) out[static_cast<size_t>(s) / 64] |= uint64_t{1} << (s % 64);
    return out;
  }

  int64_t number(const Bits& bits) {
    const std::string key(reinterpret_cast<const char*>(bits.data()), bits.size() * 8);
    const auto [at, fresh] = index_.emplace(key, static_cast<int64_t>(sets().size()));
    if (!fresh) return at->second;
    if (at->second >= Cascade::kMostSets)
      throw Error(cat("the automaton has more than ", Cascade::kMostSets,
                      " image sets, too many to decompose"),
                  "use a smaller automaton");
    const auto list = points(bits);
    sets().push_back({bits, static_cast<int64_t>(list.size()), 0, -1, -1, {}, {}});
    if (list.size() == 1) sets().back().state = list[0];
    return at->second;
  }

  void find_images() {
    std::vector<int> all(static_cast<size_t>(a_.states));
    for (size_t s = 0; s < all.size(); ++s) all[s] = static_cast<int>(s);
    number(bits_of(all));
    int64_t work = 0;
    for (size_t i = 0, singles = 0; i < sets().size(); ++i) {
      const auto from = points(sets()[i].bits);
      work += static_cast<int64_t>(from.size()) * a_.symbols;
      check(work <= kMostWork, "the automaton is too large to decompose");
      for (int64_t x = 0; x < a_.symbols; ++x) {
        std::vector<int> to;
        for (const int s : from) to.push_back(static_cast<int>(a_.step(s, x)));
        out_.images_.push_back(number(bits_of(to)));
      }
      for (; i + 1 == sets().size() && singles < all.size(); ++singles)
        number(bits_of({static_cast<int>(singles)}));
    }
  }

  // Tarjan's strongly connected components of set -> image, without recursion. Single states need
  // no class.
  void find_classes() {
    const auto n = sets().size();
    std::vector<int64_t> index(n, -1), low(n, 0), stack;
    std::vector<uint8_t> on_stack(n, 0);
    int64_t count = 0;
    struct Visit {
      int64_t set, symbol;
    };
    for (size_t root = 0; root < n; ++root) {
      if (index[root] >= 0 || sets()[root].size == 1) continue;
      std::vector<Visit> path = {{static_cast<int64_t>(root), 0}};
      while (!path.empty()) {
        auto& [v, x] = path.back();
        const auto i = static_cast<size_t>(v);
        if (x == 0 && index[i] < 0)
          index[i] = low[i] = count++, stack.push_back(v), on_stack[i] = 1;
        if (x < a_.symbols) {
          const int64_t next = image(v, x++);
          const auto j = static_cast<size_t>(next);
          if (sets()[j].size == 1) continue;
          if (index[j] < 0)
            path.push_back({next, 0});
          else if (on_stack[j])
            low[i] = std::min(low[i], index[j]);
          continue;
        }
        if (low[i] == index[i]) pop_class(v, stack, on_stack);
        path.pop_back();
        if (!path.empty()) {
          auto& above = low[static_cast<size_t>(path.back().set)];
          above = std::min(above, low[i]);
        }
      }
    }
  }

  void pop_class(int64_t root, std::vector<int64_t>& stack, std::vector<uint8_t>& on_stack) {
    const auto type = static_cast<int64_t>(out_.classes_.size());
    int64_t representative = root, last = -1;
    do {
      last = stack.back();
      stack.pop_back();
      on_stack[static_cast<size_t>(last)] = 0;
      set(last).type = type;
      representative = std::min(representative, last);
    } while (last != root);
    out_.classes_.push_back({0, representative, 0, set(root).size, {}, {}});
  }

  // The largest image sets strictly inside.
  std::vector<int64_t> tiles_of(const Bits& bits, int64_t size) {
    if (by_size_.empty()) {
      for (size_t i = 0; i < sets().size(); ++i) by_size_.push_back(static_cast<int64_t>(i));
      std::stable_sort(by_size_.begin(), by_size_.end(),
                       [&](int64_t p, int64_t q) { return set(p).size > set(q).size; });
    }
    std::vector<int64_t> out;
    for (const int64_t r : by_size_) {
      if (set(r).size >= size || !inside(set(r).bits, bits)) continue;
      const auto holds = [&](int64_t t) {
        return set(t).size > set(r).size && inside(set(r).bits, set(t).bits);
      };
      if (std::none_of(out.begin(), out.end(), holds)) out.push_back(r);
    }
    std::sort(out.begin(), out.end(),
              [&](int64_t p, int64_t q) { return lower(set(p).bits, set(q).bits); });
    return out;
  }

  // Words lead from the representative to every set of its class; they carry its tiles along.
  void spread_tiles(size_t c) {
    auto& type = out_.classes_[c];
    auto& first = set(type.representative);
    first.tiles = tiles_of(first.bits, first.size);
    first.from = points(first.bits);
    type.tiles = static_cast<int64_t>(first.tiles.size());
    std::vector<int64_t> queue = {type.representative};
    for (size_t i = 0; i < queue.size(); ++i)
      for (int64_t x = 0; x < a_.symbols; ++x) {
        const auto& p = set(queue[i]);
        const int64_t to = image(queue[i], x);
        auto& r = set(to);
        if (r.type != p.type || !r.from.empty()) continue;
        for (const int s : p.from) r.from.push_back(static_cast<int>(a_.step(s, x)));
        for (const int64_t t : p.tiles) r.tiles.push_back(image(t, x));
        queue.push_back(to);
      }
  }

  // Sets lead to smaller ones, and among equal ones to classes that were closed earlier.
  void number_levels() {
    std::vector<size_t> order(out_.classes_.size());
    for (size_t c = 0; c < order.size(); ++c) order[c] = c;
    std::stable_sort(order.begin(), order.end(), [&](size_t p, size_t q) {
      return out_.classes_[p].points < out_.classes_[q].points;
    });
    std::vector<std::vector<int64_t>> members(order.size());
    for (size_t i = 0; i < sets().size(); ++i)
      if (sets()[i].type >= 0)
        members[static_cast<size_t>(sets()[i].type)].push_back(static_cast<int64_t>(i));
    std::vector<int64_t> height(order.size(), 0);
    for (const size_t c : order) {
      const auto above = [&](int64_t other) {
        const int64_t type = set(other).type;
        if (type == static_cast<int64_t>(c)) return;
        height[c] = std::max(height[c], 1 + (type < 0 ? 0 : height[static_cast<size_t>(type)]));
      };
      for (const int64_t p : members[c]) {
        for (int64_t x = 0; x < a_.symbols; ++x) above(image(p, x));
        for (const int64_t t : set(p).tiles) above(t);
      }
    }
    out_.levels_ = set(0).type < 0 ? 0 : height[static_cast<size_t>(set(0).type)];
    for (size_t c = 0; c < order.size(); ++c) out_.classes_[c].level = out_.levels_ - height[c] + 1;
    for (auto& p : sets())
      p.depth = p.type < 0 ? out_.levels_ + 1 : out_.classes_[static_cast<size_t>(p.type)].level;
  }

  void find_generators(size_t c) {
    auto& type = out_.classes_[c];
    std::map<Permutation, Permutation> found;
    for (size_t p = 0; p < sets().size(); ++p)
      for (int64_t x = 0; x < a_.symbols && sets()[p].type == static_cast<int64_t>(c); ++x) {
        const int64_t to = image(static_cast<int64_t>(p), x);
        if (set(to).type != static_cast<int64_t>(c)) continue;
        const auto action = out_.compute(type.level, {static_cast<int64_t>(p), to, x});
        if (!std::is_sorted(action.points.begin(), action.points.end()))
          found.emplace(action.points, action.tiles);
      }
    for (const auto& [points, tiles] : found) {
      type.point_generators.push_back(points);
      type.tile_generators.push_back(tiles);
    }
  }

  Cascade& out_;
  const Automaton& a_;
  std::unordered_map<std::string, int64_t> index_;
  std::vector<int64_t> by_size_;
};

Cascade::Cascade(const Automaton& a) : automaton_(a) {
  a.check();
  Holonomy(*this).fill();
}

}  // namespace lrnn::automata
