#include "ops/take/take.h"

#include <ATen/Parallel.h>

#include <cstring>

#include "base/error.h"
#include "ops/inner.h"
#include "ops/node.h"
#include "ops/torch.h"

namespace lrnn::ops {
namespace {

constexpr int64_t kFewestBytes = 1 << 17;  // for a thread of its own
constexpr int64_t kColumns = 32;           // of a gradient that one thread adds up

Tensor take_rows_cpu(const Tensor& table_, const Tensor& index) {
  const Tensor table = table_.contiguous();
  const int64_t rows = table.size(0), n = index.numel();
  const auto one = table.sizes().slice(1);
  const size_t bytes = size_t(c10::multiply_integers(one)) * table.element_size();
  std::vector<int64_t> shape = index.sizes().vec();
  shape.insert(shape.end(), one.begin(), one.end());
  Tensor out = at::empty(shape, table.options());
  const int64_t* const at = index.const_data_ptr<int64_t>();
  const char* const from = static_cast<const char*>(table.const_data_ptr());
  char* const to = static_cast<char*>(out.mutable_data_ptr());
  at::parallel_for(0, n, kFewestBytes / int64_t(bytes + 1) + 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      check(at[i] < rows, "[take] row ", at[i], " is asked of a table of ", rows);
      if (at[i] < 0)
        std::memset(to + size_t(i) * bytes, 0, bytes);
      else
        std::memcpy(to + size_t(i) * bytes, from + size_t(at[i]) * bytes, bytes);
    }
  });
  return out;
}

// Threads own columns, so every sum has one order.
template <class R> void add_rows(const Tensor& dy, const Tensor& index, Tensor& dtable) {
  const int64_t n = index.numel(), D = dtable.numel() / dtable.size(0);
  const int64_t* const at = index.const_data_ptr<int64_t>();
  const R* const from = dy.const_data_ptr<R>();
  R* const to = dtable.mutable_data_ptr<R>();
  const int64_t blocks = (D + kColumns - 1) / kColumns;
  const int64_t bytes = n * kColumns * int64_t(sizeof(R));
  at::parallel_for(0, blocks, kFewestBytes / (bytes + 1) + 1, [&](int64_t first, int64_t last) {
    const int64_t begin = first * kColumns, end = std::min(D, last * kColumns);
    for (int64_t i = 0; i < n; ++i) {
      if (at[i] < 0) continue;
      R* const sum = to + at[i] * D;
      const R* const row = from + i * D;
      for (int64_t j = begin; j < end; ++j) sum[j] += row[j];
    }
  });
}

Tensor give_rows_cpu(const Tensor& dy, const Tensor& index, at::IntArrayRef shape) {
  const auto dtype = dy.scalar_type();
  if (dtype != at::kFloat && dtype != at::kDouble)
    return give_rows_cpu(dy.to(at::kFloat), index, shape).to(dtype);
  Tensor dtable = at::zeros(shape, dy.options());
  const Tensor in = dy.contiguous();
  dtype == at::kFloat ? add_rows<float>(in, index, dtable) : add_rows<double>(in, index, dtable);
  return dtable;
}

// On the CPU without the dispatcher, which a tiny model would notice.
Tensor take_rows(const Tensor& table, const Tensor& index) {
  if (table.device().is_cpu()) return take_rows_cpu(table, index);
  static const auto op = find_op<decltype(take_rows_cpu)>("lrnn::take_rows");
  return call_inner("take", table.device(), op, table, index);
}

Tensor give_rows(const Tensor& dy, const Tensor& index, at::IntArrayRef shape) {
  if (dy.device().is_cpu()) return give_rows_cpu(dy, index, shape);
  static const auto op = find_op<decltype(give_rows_cpu)>("lrnn::give_rows");
  return call_inner("take", dy.device(), op, dy, index, shape);
}

struct TakeBackward final : torch::autograd::Node {
  Tensor index;
  std::vector<std::vector<int64_t>> shapes;  // of the tables

  std::string name() const override { return "TakeBackward"; }
  variable_list apply(variable_list&& grad) override {
    check_last_derivative("take", grad);
    return below_autograd([&] {
      variable_list out(num_outputs());
      for (size_t i = 0; i < out.size(); ++i)
        if (grad[i].defined() && task_should_compute_output(i))
          out[i] = give_rows(grad[i], index, shapes[i]);
      return out;
    });
  }
};

struct PickBackward final : torch::autograd::Node {
  Tensor index;
  std::vector<int64_t> shape;
  std::string name() const override { return "PickBackward"; }
  variable_list apply(variable_list&& grad) override {
    if (!grad[0].defined()) return {Tensor()};
    return {at::zeros(shape, grad[0].options()).index_copy_(0, index, grad[0])};
  }
};

TORCH_LIBRARY_FRAGMENT(lrnn, m) {
  m.def("take_rows(Tensor table, Tensor index) -> Tensor");
  m.def("give_rows(Tensor dy, Tensor index, int[] shape) -> Tensor");
}
TORCH_LIBRARY_IMPL(lrnn, CPU, m) {
  m.impl("take_rows", take_rows_cpu);
  m.impl("give_rows", give_rows_cpu);
}

}  // namespace

std::vector<Tensor> take_definition(const std::vector<Tensor>& tables, const Tensor& index) {
  std::vector<Tensor> out;
  for (const Tensor& table : tables) {
    std::vector<int64_t> shape = index.sizes().vec(), ones = shape;
    shape.insert(shape.end(), table.sizes().begin() + 1, table.sizes().end());
    ones.resize(shape.size(), 1);
    out.push_back(at::index_select(table, 0, index.clamp_min(0).flatten())
                      .view(shape)
                      .masked_fill(index.lt(0).view(ones), 0));
  }
  return out;
}

std::vector<Tensor> take(const std::vector<Tensor>& tables, const Tensor& index) {
  check(index.scalar_type() == at::kLong, "[take] the index must be int64, got ",
        index.scalar_type());
  // Made on the CPU, an index may serve a table on a GPU.
  const Tensor flat = (tables.empty() ? index : index.to(tables[0].device())).contiguous();
  std::shared_ptr<TakeBackward> node;
  if (torch::autograd::compute_requires_grad(tables)) {
    node.reset(new TakeBackward, torch::autograd::deleteNode);
    node->set_next_edges(torch::autograd::collect_next_edges(tables));
    node->index = flat;
  }
  for (const auto& table : tables)
    check(table.dim() >= 1 && table.size(0) > 0 && table.device() == flat.device(),
          "[take] tables must have rows and be on one device, got ", table.sizes(), " on ",
          table.device());
  std::vector<Tensor> out;
  out.reserve(tables.size());
  if (has_tangent(tables)) return take_definition(tables, flat);
  if (node)
    for (const auto& table : tables) node->shapes.push_back(table.sizes().vec());
  below_autograd([&] {
    for (const auto& table : tables) out.push_back(take_rows(table, flat));
  });
  if (node) torch::autograd::set_history(out, node);
  return out;
}

Tensor pick_definition(const Tensor& x, const Tensor& index) {
  return at::index_select(x, 0, index);
}

Tensor pick(const Tensor& x, const Tensor& index) {
  if (has_tangent(x)) return pick_definition(x, index);
  const auto node = make_node<PickBackward>(x);
  if (node) node->index = index, node->shape = x.sizes().vec();
  Tensor out = below_autograd([&] { return at::index_select(x, 0, index); });
  if (node) torch::autograd::set_history(out, node);
  return out;
}

}  // namespace lrnn::ops
