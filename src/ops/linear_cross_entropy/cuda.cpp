#include "kernels/cuda/train/losses.h"
#include "ops/cuda/stream.h"
#include "ops/linear_cross_entropy/chunks.h"

namespace lrnn::ops::cuda {
namespace {

struct LossOnGpu {
  // Rows of every product lie on 128 bytes: the fast ones want that.
  static int64_t columns(int64_t V) { return (V + 63) / 64 * 64; }

  static void rows(const Tensor& logits, const ChunkOfRows& chunk) {
    const OnDevice on(logits);
    kernels::cuda::row_losses({.type = kernel_type(logits),
                               .rows = logits.size(0),
                               .V = chunk.V,
                               .stride = logits.size(1),
                               .x = logits.data_ptr(),
                               .target = chunk.target.const_data_ptr<int64_t>(),
                               .share = chunk.share,
                               .gradient = chunk.gradient,
                               .loss = chunk.loss.data_ptr(),
                               .right = chunk.right.data_ptr()},
                              on.stream());
  }

  static void add_product(Tensor& sum, const Tensor& a, const Tensor& b, bool first) {
    if (a.scalar_type() == sum.scalar_type())
      at::addmm_out(sum, sum, a.t(), b, first ? 0 : 1, 1);
    else  // bfloat16, left in float32; or, with one more pass, add_ of at::mm(a.t(), b, at::kFloat)
      at::addmm_out(sum, sum, a.t(), b, sum.scalar_type(), first ? 0 : 1, 1);
  }

  static void add_up(const Tensor& loss, const Tensor& right, double share,
                     LinearCrossEntropyResult& out) {
    const OnDevice on(loss);
    kernels::cuda::add_row_losses({.type = kernel_type(loss),
                                   .rows = loss.numel(),
                                   .loss = loss.const_data_ptr(),
                                   .right = right.const_data_ptr(),
                                   .share = share,
                                   .loss_sum = out.loss.data_ptr(),
                                   .right_sum = out.right.data_ptr()},
                                  on.stream());
  }
};

}  // namespace

TORCH_LIBRARY_FRAGMENT(lrnn, m) { back_end<LossInChunks<LossOnGpu>>(m, c10::DispatchKey::CUDA); }

}  // namespace lrnn::ops::cuda
