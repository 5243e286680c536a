#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "cli/explain.h"
#include "compile/parts.h"
#include "compile/scales.h"
#include "ops/torch.h"

// `lrnn explain`: what a compiled model holds after every letter, for the page to step through.
namespace lrnn::cli {
namespace {

using automata::Cascade;
using compile::Compiled;
using torch::Tensor;

constexpr size_t kMostPlaces = 4000;
constexpr int64_t kMostEdges = 50000, kMostNumbers = 400000;
constexpr int64_t kRowsAtOnce = 2048;
constexpr uint64_t kTriedWords = 4;
constexpr int64_t kTriedLetters = 100;
constexpr double kAgree = 1e-3;  // two ways to compute one number

const char* const kTooMany =
    "What the model holds is not shown: it can be in too many different places to list them here.";
const char* const kDisagrees =
    "What the model holds is not shown: it does not follow from the plan. `lrnn verify` says what "
    "is "
    "wrong with the model.";

const Cascade* only_cascade(const Compiled& c) {
  if (c.plan.components.size() != 1 || c.plan.components[0].group_only) return nullptr;
  const auto* cascade = c.plan.components[0].cascade.get();
  return cascade->levels() > 0 ? cascade : nullptr;
}

std::string about(const compile::Head& head) {
  if (!head.group) return head.one_row ? "a row, kept or overwritten" : "a plane";
  return head.group->name +
         (head.group->copies == 2 ? ", stored twice so that every number is exact" : "");
}

Tensor on_cpu(const Tensor& x) { return x.to(torch::kCPU, torch::kFloat64).contiguous(); }

bool close(const std::vector<double>& a, const std::vector<double>& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (!(std::abs(a[i] - b[i]) < kAgree)) return false;
  return a.size() == b.size();
}

}  // namespace

Spots::Spots(const Compiled& c, bool coordinates)
    : a_(c.subject.automaton), cascade_(coordinates ? only_cascade(c) : nullptr) {}

Spot Spots::start() const {
  if (!cascade_) return {a_.start, {}};
  return {a_.start, cascade_->without_idle(cascade_->coordinates(a_.start))};
}

Spot Spots::step(const Spot& s, int64_t x) const {
  if (!cascade_) return {a_.step(s.state, x), {}};
  return {a_.step(s.state, x), cascade_->without_idle(cascade_->step(s.tuple, x))};
}

std::string Spots::text(const Spot& s) {
  std::string out;
  for (const int64_t y : s.tuple) out += (out.empty() ? "(" : ", ") + std::to_string(y);
  return out.empty() ? out : out + ")";
}

Follower::Follower(const Compiled& c, model::Model& model)
    : c_(c),
      net_(c.built->network),
      model_(model),
      spots_(c, true),
      symbols_(c.subject.automaton.symbols) {
  for (size_t l = 0; l < net_.layers.size(); ++l)
    for (size_t h = 0; h < net_.layers[l].heads.size(); ++h) {
      const auto& head = net_.layers[l].heads[h];
      auto& made = out_.heads.emplace_back();
      made.layer = int64_t(l) + 1, made.head = int64_t(h) + 1;
      made.rows = head.rows, made.cols = head.cols;
      made.about = about(head);
      if (head.group) made.query = head.query;
    }
  known_.resize(out_.heads.size());
}

Stepping Follower::follow() {
  const Layers first = start();
  const Held before = held(wide(first), 0);
  for (size_t i = 0; i < before.size(); ++i) out_.heads[i].start = before[i];
  place_of(spots_.start(), before, first, 0);
  for (size_t i = 0; i < spot_.size() && out_.without.empty();) {
    const size_t last = std::min(spot_.size(), i + size_t(kRowsAtOnce / symbols_) + 1);
    expand(i, last);
    i = last;
    if (spot_.size() > kMostPlaces || int64_t(spot_.size()) * symbols_ > kMostEdges ||
        numbers_ > kMostNumbers)
      out_.without = kTooMany;
  }
  for (uint64_t seed = 0; seed < kTriedWords && out_.without.empty(); ++seed) try_word(seed);
  return std::move(out_);
}

Follower::Layers Follower::start() {
  Layers out;
  if (c_.weights.bos > 0) {
    std::vector<int64_t> before;
    for (int64_t b = c_.weights.bos; b > 0; --b) before.push_back(c_.weights.vocabulary - b);
    model::State state;
    model_.forward(torch::tensor(before).unsqueeze(0), state);
    for (const auto& layer : state) out.push_back(layer[0]);
    return out;
  }
  const compile::Parts parts(model_, net_);
  for (int64_t l = 0; l < model_.config().layers; ++l)
    out.push_back(parts.initial_state(l).unsqueeze(0));
  return out;
}

std::vector<Follower::Applied> Follower::read(const Tensor& tokens, Layers& layers) {
  std::vector<Applied> out(layers.size());
  mixers::Context context;
  context.observe = [&](const std::string& name, const Tensor& value) {
    for (size_t l = 0; l < out.size(); ++l) {
      const std::string at = cat("layers.", l, ".");
      if (name == at + "k") out[l].k = on_cpu(value);
      if (name == at + "v") out[l].v = on_cpu(value) / compile::kStateUnit;
      if (name == at + "beta") out[l].beta = on_cpu(value);
      if (name == at + "log_gate") out[l].gate = on_cpu(value.exp());
    }
  };
  model::State state;
  for (const auto& layer : layers) state.push_back({layer});
  model_.forward(tokens, state, context);
  for (size_t l = 0; l < layers.size(); ++l) layers[l] = state[l][0];
  return out;
}

Follower::Layers Follower::wide(const Layers& layers) {
  Layers out;
  for (const auto& layer : layers) out.push_back(on_cpu(layer) / compile::kStateUnit);
  return out;
}

Follower::Held Follower::held(const Layers& wide, int64_t b) const {
  Held out;
  for (const auto& head : out_.heads) {
    const Tensor& layer = wide[size_t(head.layer - 1)];
    const int64_t H = layer.size(1), K = layer.size(2), V = layer.size(3);
    const double* h = layer.data_ptr<double>() + (b * H + head.head - 1) * K * V;
    auto& m = out.emplace_back();
    for (int64_t r = 0; r < head.rows; ++r) m.insert(m.end(), h + r * V, h + r * V + head.cols);
  }
  return out;
}

// What the next letters depend on: a group's element, a flip-flop's value, or a sign.
std::vector<int64_t> Follower::decided(const Held& held) const {
  std::vector<int64_t> out;
  size_t i = 0;
  for (const auto& layer : net_.layers)
    for (const auto& head : layer.heads) {
      const auto& h = held[i++];
      if (head.one_row && head.cols > 1)
        out.push_back(std::max_element(h.begin(), h.end()) - h.begin());
      else
        for (const double v : h) out.push_back(head.group ? std::llround(64 * v) : v < 0);
    }
  return out;
}

int64_t Follower::place_of(const Spot& spot, const Held& now, const Layers& layers, int64_t b) {
  const auto [at, fresh] = number_.emplace(std::pair(spot, decided(now)), int64_t(spot_.size()));
  if (fresh) {
    spot_.push_back(spot);
    Layers own;
    for (const auto& layer : layers) own.push_back(layer.slice(0, b, b + 1).clone());
    state_.push_back(std::move(own));
    out_.places.push_back({spot.state, Spots::text(spot), {}, {}});
  }
  return at->second;
}

// H <- g H, then H <- H + beta k (v - H^T k)^T for every step: in all H <- A H + B.
Stepping::Action Follower::action(const std::vector<Applied>& applied, size_t which, int64_t b,
                                  int64_t t) const {
  const auto& head = out_.heads[which];
  const auto& x = applied[size_t(head.layer - 1)];
  const int64_t T = x.k.size(1), N = x.k.size(2), H = x.k.size(3), K = x.k.size(4);
  const int64_t V = x.v.size(4), h = head.head - 1, R = head.rows, C = head.cols;
  const double gate = x.gate.defined() ? x.gate.data_ptr<double>()[(b * T + t) * H + h] : 1;
  Stepping::Action out{Matrix(size_t(R * R)), Matrix(size_t(R * C))};
  for (int64_t r = 0; r < R; ++r) out.a[size_t(r * R + r)] = gate;
  const auto reflect = [&](Matrix& m, int64_t cols, const double* k, double beta, const double* v) {
    for (int64_t c = 0; c < cols; ++c) {
      double error = v ? v[c] : 0;
      for (int64_t r = 0; r < R; ++r) error -= k[r] * m[size_t(r * cols + c)];
      for (int64_t r = 0; r < R; ++r) m[size_t(r * cols + c)] += beta * k[r] * error;
    }
  };
  for (int64_t j = 0; j < N; ++j) {
    const int64_t at = ((b * T + t) * N + j) * H + h;
    const double *k = x.k.data_ptr<double>() + at * K, *v = x.v.data_ptr<double>() + at * V;
    const double beta = x.beta.data_ptr<double>()[at];
    reflect(out.a, R, k, beta, nullptr);
    reflect(out.b, C, k, beta, v);
  }
  return out;
}

// Which action of the head this is. Kernels differ in the last digits, so the same action need not
// have the same numbers every time.
int64_t Follower::number_of(Stepping::Action one, size_t which) {
  std::vector<int64_t> rounded;
  for (const auto* m : {&one.a, &one.b})
    for (const double v : *m) rounded.push_back(std::llround(v * 1e6));
  auto& actions = out_.heads[which].actions;
  const auto [at, fresh] = known_[which].emplace(rounded, int64_t(actions.size()));
  if (!fresh) return at->second;
  if (std::all_of(one.b.begin(), one.b.end(), [](double v) { return std::abs(v) < 1e-9; }))
    one.b.clear();
  for (size_t i = 0; i < actions.size(); ++i)
    if (close(actions[i].a, one.a) && close(actions[i].b, one.b)) return at->second = int64_t(i);
  numbers_ += int64_t(one.a.size() + one.b.size());
  actions.push_back(std::move(one));
  return at->second;
}

// The actions of all heads.
int64_t Follower::move_of(const std::vector<Applied>& applied, int64_t b, int64_t t) {
  std::vector<int64_t> all;
  for (size_t i = 0; i < out_.heads.size(); ++i)
    all.push_back(number_of(action(applied, i, b, t), i));
  const auto [at, fresh] = known_moves_.emplace(all, int64_t(out_.moves.size()));
  if (fresh) out_.moves.push_back(all);
  return at->second;
}

Follower::Held Follower::after(const Held& before, int64_t move) const {
  Held out;
  for (size_t i = 0; i < before.size(); ++i) {
    const auto& head = out_.heads[i];
    const auto& act = head.actions[size_t(out_.moves[size_t(move)][i])];
    const int64_t R = head.rows, C = head.cols;
    Matrix now = act.b.empty() ? Matrix(size_t(R * C)) : act.b;
    for (int64_t r = 0; r < R; ++r)
      for (int64_t q = 0; q < R; ++q)
        for (int64_t c = 0; c < C; ++c)
          now[size_t(r * C + c)] += act.a[size_t(r * R + q)] * before[i][size_t(q * C + c)];
    out.push_back(std::move(now));
  }
  return out;
}

// All letters from the places first .. last-1, in one pass.
void Follower::expand(size_t first, size_t last) {
  Layers layers(state_[0].size());
  for (size_t l = 0; l < layers.size(); ++l) {
    std::vector<Tensor> rows;
    for (size_t i = first; i < last; ++i) rows.push_back(state_[i][l]);
    layers[l] = torch::cat(rows).repeat_interleave(symbols_, 0);
  }
  const Tensor tokens = torch::arange(symbols_).repeat({int64_t(last - first)}).unsqueeze(1);
  const auto applied = read(tokens, layers);
  const Layers numbers = wide(layers);
  for (size_t i = first; i < last; ++i) {
    const Held before = held(wide(state_[i]), 0);
    for (int64_t x = 0; x < symbols_; ++x) {
      const int64_t b = int64_t(i - first) * symbols_ + x, move = move_of(applied, b, 0);
      const Held now = after(before, move), model = held(numbers, b);
      for (size_t h = 0; h < now.size(); ++h)
        if (!close(now[h], model[h])) out_.without = kDisagrees;
      const int64_t to = place_of(spots_.step(spot_[i], x), model, layers, b);
      out_.places[i].next.push_back(to);
      out_.places[i].moves.push_back(move);
    }
  }
}

// Two ways along a word: from place to place with what is noted there, and the model by itself.
void Follower::try_word(uint64_t seed) {
  Random random(seed, 0, 0);
  std::vector<int64_t> word;
  for (int64_t t = 0; t < kTriedLetters; ++t)
    word.push_back(int64_t(random.below(uint64_t(symbols_))));
  Layers layers = state_[0];
  Held noted = held(wide(layers), 0);
  const auto applied = read(torch::tensor(word).unsqueeze(0), layers);
  size_t at = 0;
  for (size_t t = 0; t < word.size(); ++t) {
    const int64_t move = out_.places[at].moves[size_t(word[t])];
    if (move_of(applied, 0, int64_t(t)) != move) out_.without = kDisagrees;
    noted = after(noted, move);
    at = size_t(out_.places[at].next[size_t(word[t])]);
  }
  const Held model = held(wide(layers), 0);
  for (size_t h = 0; h < noted.size(); ++h)
    if (!close(noted[h], model[h])) out_.without = kDisagrees;
}

}  // namespace lrnn::cli
