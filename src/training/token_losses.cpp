#include "training/token_losses.h"

#include <algorithm>

#include "ops/torch.h"
#include "training/batch.h"
#include "training/evaluate.h"

namespace lrnn::training {
namespace {

using tasks::Example;
using torch::Tensor;

// Logits of one forward, as numbers.
constexpr int64_t kMostLogits = int64_t{1} << 27, kMostGpuLogits = int64_t{1} << 30;
constexpr int64_t kRowsAtOnce = 1024;  // of logits that are worked on in float32
constexpr int64_t kPadLossesTo = 32;   // GPU: few different shapes

int64_t size_of(const Example& e) { return int64_t(e.input.size()); }

class Reader {
 public:
  Reader(model::Model& model, const std::string& accuracy, bool narrow)
      : model_(model),
        accuracy_(accuracy),
        narrow_(narrow),
        gpu_(!model.device().is_cpu()),
        piece_(
            std::clamp<int64_t>(kMostLogits / model.vocabulary() / 64 * 64, 64, kTokensPerPiece)) {}

  std::vector<TokenLosses> read(const Example* examples, int64_t count) {
    std::vector<TokenLosses> out(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      out[size_t(i)].loss.assign(examples[i].input.size(), 0);
      out[size_t(i)].right.assign(examples[i].input.size(), 0);
    }
    for (int64_t first = 0, n; first < count; first += n) {
      n = group(examples + first, count - first);
      TokenLosses* const to = &out[size_t(first)];
      if (size_of(examples[first]) <= piece_)
        read_short(examples + first, n, to);
      else if (examples[first].starts.empty())
        read_long(examples + first, n, to);
      else
        read_documents(examples[first], *to);
    }
    return out;
  }

 private:
  // How many from the first on are read together.
  int64_t group(const Example* e, int64_t count) const {
    const bool is_long = size_of(*e) > piece_;
    if (is_long && !e->starts.empty()) return 1;
    const int64_t most = std::max(piece_, tokens_at_once(model_));
    int64_t n = 1, longest = std::min(size_of(*e), piece_), tokens = longest;
    for (; n < count; ++n) {
      const auto& next = e[n];
      if (is_long ? size_of(next) != size_of(*e) || !next.starts.empty() : size_of(next) > piece_)
        break;
      longest = std::max(longest, std::min(size_of(next), piece_));
      tokens += std::min(size_of(next), piece_);
      if ((gpu_ ? longest * (n + 1) : tokens) > most) break;
    }
    return n;
  }

  // Packed, or on a GPU as a rectangle.
  void read_short(const Example* examples, int64_t count, TokenLosses* to) {
    const int64_t length =
        gpu_ ? (longest(examples, count) + kPadLossesTo - 1) / kPadLossesTo * kPadLossesTo : 0;
    int64_t targets = 0;
    for (auto e = examples; e != examples + count; ++e)
      targets += std::count_if(e->target.begin(), e->target.end(), [](auto t) { return t >= 0; });
    if (targets == 0) return;
    Batch batch = make_batch(examples, count, model_.vocabulary(), length);
    batch.context.accuracy = accuracy_;
    const Tensor target = batch.target;
    Tensor at = batch.context.read_at;  // the rows that are read, on the CPU
    if (gpu_) {
      Batch there = room_for(batch, model_.device());
      send(batch, there);
      batch = there;
    }
    model::State state;
    const Tensor logits = model_.forward(batch.input, state, batch.context);
    const auto [loss, right] = losses(logits, batch.target);
    const float* const nats = loss.const_data_ptr<float>();
    const bool* const hit = right.const_data_ptr<bool>();
    const int64_t* const row = at.defined() ? at.const_data_ptr<int64_t>() : nullptr;
    int64_t next = 0, begin = 0;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t size = size_of(examples[i]);
      for (int64_t t = 0; t < size; ++t) {
        if (examples[i].target[size_t(t)] < 0) continue;
        int64_t from = begin + t;
        if (row) {
          check(row[next] == from, "the rows of a batch are out of order");
          from = next++;
        }
        to[i].loss[size_t(t)] = nats[from];
        to[i].right[size_t(t)] = hit[from];
      }
      begin += length ? length : size;
    }
  }

  // Equally long ones side by side, in pieces.
  void read_long(const Example* examples, int64_t count, TokenLosses* to) {
    const int64_t length = size_of(*examples);
    Tensor input = torch::empty({count, length}, torch::kInt64),
           target = torch::empty({count, length}, torch::kInt64);
    for (int64_t i = 0; i < count; ++i) {
      std::copy(examples[i].input.begin(), examples[i].input.end(),
                input.data_ptr<int64_t>() + i * length);
      std::copy(examples[i].target.begin(), examples[i].target.end(),
                target.data_ptr<int64_t>() + i * length);
    }
    const auto device = model_.device();
    input = input.to(device), target = target.to(device);
    mixers::Context context;
    context.accuracy = accuracy_;
    model::State state;
    for (int64_t first = 0; first < length; first += piece_) {
      const int64_t n = std::min(piece_, length - first);
      const Tensor logits = model_.forward(input.narrow(1, first, n).contiguous(), state, context);
      const auto [loss, right] = losses(logits, target.narrow(1, first, n).contiguous().view({-1}));
      for (int64_t i = 0; i < count; ++i) {
        std::copy_n(loss.const_data_ptr<float>() + i * n, n, to[i].loss.begin() + first);
        std::copy_n(right.const_data_ptr<bool>() + i * n, n, to[i].right.begin() + first);
      }
    }
  }

  // Every document by itself: none has to do with another.
  void read_documents(const Example& e, TokenLosses& to) {
    std::vector<int64_t> ends = e.starts;
    ends.push_back(size_of(e));
    int64_t begin = 0;
    for (const int64_t end : ends) {
      Example one;
      one.input.assign(e.input.begin() + begin, e.input.begin() + end);
      one.target.assign(e.target.begin() + begin, e.target.begin() + end);
      const auto said = read(&one, 1);
      std::copy(said[0].loss.begin(), said[0].loss.end(), to.loss.begin() + begin);
      std::copy(said[0].right.begin(), said[0].right.end(), to.right.begin() + begin);
      begin = end;
    }
  }

  // float [rows], bool [rows] on the CPU; rows without a target give 0 and false.
  std::pair<Tensor, Tensor> losses(const Tensor& logits, const Tensor& target) const {
    const Tensor rows = logits.reshape({-1, logits.size(-1)});
    std::vector<Tensor> loss, right;
    for (int64_t first = 0; first < rows.size(0); first += kRowsAtOnce) {
      const int64_t n = std::min(kRowsAtOnce, rows.size(0) - first);
      const Tensor x = rows.narrow(0, first, n).to(torch::kFloat32), t = target.narrow(0, first, n);
      const Tensor some = t >= 0;
      const Tensor at = t.clamp_min(0).unsqueeze(1);
      const Tensor of_target = narrow_ ? x.to(torch::kBFloat16)
                                             .log_softmax(1)
                                             .gather(1, at)
                                             .squeeze(1)
                                             .neg()
                                             .to(torch::kFloat32)
                                       : x.logsumexp(1) - x.gather(1, at).squeeze(1);
      loss.push_back(torch::where(some, of_target, torch::zeros_like(of_target)));
      right.push_back((x.argmax(1) == t).logical_and(some));
    }
    return {torch::cat(loss).cpu().contiguous(), torch::cat(right).cpu().contiguous()};
  }

  model::Model& model_;
  const std::string& accuracy_;
  bool narrow_, gpu_;
  int64_t piece_;
};

}  // namespace

int64_t tokens_at_once(int64_t vocabulary, bool gpu) {
  return std::min((gpu ? kMostGpuLogits : kMostLogits) / vocabulary,
                  gpu ? kTokensPerGpuForward : kTokensPerForward);
}
int64_t tokens_at_once(const model::Model& model) {
  return tokens_at_once(model.vocabulary(), !model.device().is_cpu());
}

std::vector<TokenLosses> token_losses(model::Model& model, const Example* examples, int64_t count,
                                      const std::string& accuracy, bool narrow) {
  return Reader(model, accuracy, narrow).read(examples, count);
}

}  // namespace lrnn::training
