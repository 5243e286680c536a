#include "kernels/cuda/rows/rows.h"
#include "ops/cuda/stream.h"
#include "ops/inner.h"
#include "ops/torch.h"

// The CUDA kernels under take(). read_state and linears need none: they are products of torch's
// own.
namespace lrnn::ops::cuda {
namespace {

using torch::Tensor;

Tensor take_rows_cuda(const Tensor& table_, const Tensor& index) {
  const OnDevice on(table_);
  const Tensor table = table_.contiguous();
  const auto one = table.sizes().slice(1);
  std::vector<int64_t> shape = index.sizes().vec();
  shape.insert(shape.end(), one.begin(), one.end());
  Tensor out = at::empty(shape, table.options());
  kernels::cuda::take_rows(
      table.const_data_ptr(), table.size(0), c10::multiply_integers(one) * table.element_size(),
      index.const_data_ptr<int64_t>(), index.numel(), out.data_ptr(), on.stream());
  return out;
}

Tensor give_rows_cuda(const Tensor& dy_, const Tensor& index, at::IntArrayRef shape) {
  const OnDevice on(dy_);
  const Tensor dy = dy_.contiguous();
  const int64_t n = index.numel(), rows = shape[0], D = c10::multiply_integers(shape.slice(1));
  const auto wide = dy.options().dtype(wide_type(dy));
  const kernels::cuda::GivenRows given{kernel_type(dy), dy.const_data_ptr(), n, rows, D};
  if (rows <= kernels::cuda::kFewRows) {
    const int64_t part = kernels::cuda::give_part(n, D);
    const Tensor partial = at::empty({(n + part - 1) / part, rows, D}, wide);
    kernels::cuda::give_to_few(given, index.const_data_ptr<int64_t>(), partial.data_ptr(),
                               on.stream());
    const Tensor dtable = at::empty(shape, dy.options());
    add_parts(partial, dtable, on.stream());
    return dtable;
  }
  const auto [sorted, order] = at::sort(index.flatten(), /*stable=*/true, 0, false);
  const Tensor dtable = at::empty({rows, D}, wide);
  kernels::cuda::give_sorted(given, sorted.const_data_ptr<int64_t>(),
                             order.const_data_ptr<int64_t>(), dtable.data_ptr(), on.stream());
  return dtable.view(shape).to(dy.scalar_type());
}

}  // namespace

TORCH_LIBRARY_IMPL(lrnn, CUDA, m) {
  m.impl("take_rows", take_rows_cuda);
  m.impl("give_rows", give_rows_cuda);
}

}  // namespace lrnn::ops::cuda
