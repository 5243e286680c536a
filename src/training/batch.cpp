#include "training/batch.h"

#include <algorithm>

#include "ops/torch.h"

namespace lrnn::training {

using tasks::Example;
using torch::Tensor;

namespace {

// A wrong task would otherwise surface as an index error deep inside an embedding.
void check_example(const Example& e, int64_t vocabulary) {
  check(!e.input.empty(), "the task made an example without tokens");
  check(e.input.size() == e.target.size(), "the task made an example of ", e.input.size(),
        " tokens with ", e.target.size(), " targets");
  for (int64_t token : e.input)
    check(token >= 0 && token < vocabulary, "the task made token ", token,
          ", outside its vocabulary of ", vocabulary);
  for (int64_t token : e.target)
    check(token >= -1 && token < vocabulary, "the task made target ", token,
          ", outside its vocabulary of ", vocabulary);
  int64_t before = 0;
  for (int64_t start : e.starts) {
    check(start > before && start < int64_t(e.input.size()), "the task lets a sequence of ",
          e.input.size(), " tokens begin anew at ", start, ", after ", before);
    before = start;
  }
}

int64_t questions(const Example& e) {
  return std::count_if(e.target.begin(), e.target.end(), [](int64_t t) { return t >= 0; });
}

// All of one length, or end to end. The target has one entry per row.
Batch pack(const Example* examples, int64_t count) {
  const Example* end = examples + count;
  int64_t total = 0, sequences = 0;
  bool equal = true;
  for (auto e = examples; e != end; ++e) {
    total += int64_t(e->input.size()), sequences += 1 + int64_t(e->starts.size());
    equal &= e->input.size() == examples->input.size() && e->starts.empty();
  }
  Batch out;
  out.input = torch::empty({total}, torch::kInt64);
  out.target = torch::empty({total}, torch::kInt64);
  auto input = out.input.data_ptr<int64_t>(), target = out.target.data_ptr<int64_t>();
  auto cu_seqlens = torch::zeros({sequences + 1}, torch::kInt64);
  auto begin = cu_seqlens.data_ptr<int64_t>();
  for (auto e = examples; e != end; ++e) {
    input = std::copy(e->input.begin(), e->input.end(), input);
    target = std::copy(e->target.begin(), e->target.end(), target);
    const int64_t first = *begin;
    for (int64_t start : e->starts) *++begin = first + start;
    *++begin = first + int64_t(e->input.size());
  }
  out.input = equal ? out.input.view({count, -1}) : out.input.unsqueeze(0);
  if (!equal) out.context.cu_seqlens = cu_seqlens;
  return out;
}

Batch pad(const Example* examples, int64_t count, int64_t length) {
  Batch out;
  out.input = torch::zeros({count, length}, torch::kInt64);
  out.target = torch::full({count * length}, -1, torch::kInt64);
  auto input = out.input.data_ptr<int64_t>(), target = out.target.data_ptr<int64_t>();
  for (auto e = examples; e != examples + count; ++e, input += length, target += length) {
    check(int64_t(e->input.size()) <= length, "an example of ", e->input.size(),
          " tokens does not fit into a rectangle of ", length);
    if (!e->starts.empty())
      throw Error("task.documents: reset works on the CPU only",
                  "use task.documents=join, or --device cpu");
    std::copy(e->input.begin(), e->input.end(), input);
    std::copy(e->target.begin(), e->target.end(), target);
  }
  return out;
}

// One question of every example: their number, and with it every shape, is that of the examples.
void read_at_questions(Batch& batch) {
  const Tensor all = batch.target;
  batch.target = torch::empty({batch.targets}, torch::kInt64);
  batch.context.read_at = torch::empty({batch.targets}, torch::kInt64);
  auto target = batch.target.data_ptr<int64_t>(), row = batch.context.read_at.data_ptr<int64_t>();
  const int64_t* const at = all.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < all.numel(); ++i)
    if (at[i] >= 0) *target++ = at[i], *row++ = i;
}

}  // namespace

Batch make_batch(const Example* examples, int64_t count, int64_t vocabulary, int64_t length) {
  check(count > 0, "a batch needs at least one example");
  int64_t targets = 0;
  bool one_each = true;
  for (auto e = examples; e != examples + count; ++e) {
    check_example(*e, vocabulary);
    const int64_t asked = questions(*e);
    targets += asked, one_each &= asked == 1;
  }
  check(targets > 0, "the task made a batch without a single target");
  Batch out = length ? pad(examples, count, length) : pack(examples, count);
  out.targets = targets;
  if (one_each) read_at_questions(out);
  return out;
}

int64_t longest(const Example* examples, int64_t count) {
  size_t out = 0;
  for (auto e = examples; e != examples + count; ++e) out = std::max(out, e->input.size());
  return int64_t(out);
}

int64_t targets_of(const Example* examples, int64_t count) {
  int64_t out = 0;
  for (auto e = examples; e != examples + count; ++e) out += questions(*e);
  return out;
}

Batch room_for(const Batch& batch, torch::Device device) {
  Batch out = batch;
  out.input = torch::empty_like(batch.input, device);
  out.target = torch::empty_like(batch.target, device);
  if (batch.context.read_at.defined())
    out.context.read_at = torch::empty_like(batch.context.read_at, device);
  return out;
}

void send(const Batch& batch, Batch& to) {
  const auto copy = [](Tensor& x, const Tensor& from) {
    if (from.defined()) x.copy_(from.is_pinned() ? from : from.pin_memory(), true);
  };
  copy(to.input, batch.input), copy(to.target, batch.target);
  copy(to.context.read_at, batch.context.read_at);
}

std::vector<Example> draw(const tasks::Task& task, uint64_t seed, tasks::Split split, Range length,
                          int64_t first, int64_t count) {
  std::vector<Example> out;
  out.reserve(size_t(count));
  for (int64_t i = first; i < first + count; ++i)
    out.push_back(task.sample(seed, split, uint64_t(i), length));
  return out;
}

std::vector<Example> draw_up_to(const tasks::Task& task, uint64_t seed, int64_t longest,
                                int64_t first, int64_t count) {
  const auto split = tasks::Split::kTrain;
  const Range whole = task.length(split);
  if (longest >= whole.hi) return draw(task, seed, split, whole, first, count);
  if (!task.asks_after_every_letter())
    return draw(task, seed, split, {std::min(whole.lo, longest), longest}, first, count);
  auto out = draw(task, seed, split, whole, first, count);
  const size_t most = size_t(longest) + task.before_word().size();
  for (auto& e : out)
    if (e.input.size() > most) e.input.resize(most), e.target.resize(most), e.length = longest;
  return out;
}

Tensor loss_sum(const Tensor& logits, const Batch& batch, double smoothing) {
  // float64 stays float64; bfloat16 logits are compared in float32.
  auto rows = logits.reshape({-1, logits.size(-1)});
  if (rows.scalar_type() == torch::kBFloat16) rows = rows.to(torch::kFloat32);
  if (smoothing > 0)
    return at::cross_entropy_loss(rows, batch.target, {}, at::Reduction::Sum, -1, smoothing);
  return at::nll_loss(at::log_softmax(rows, -1), batch.target, {}, at::Reduction::Sum, -1);
}

Tensor right(const Tensor& logits, const Batch& batch) {
  return logits.detach().reshape({-1, logits.size(-1)}).argmax(-1) == batch.target;
}

}  // namespace lrnn::training
