#include "ops/linear_cross_entropy/chunks.h"
#include "ops/rows.h"

// The rows of a chunk of logits on the CPU: losses, and gradients in their place.
namespace lrnn::ops {
namespace {

struct LossOnCpu {
  static int64_t columns(int64_t V) { return V; }

  static void rows(const Tensor& logits, const ChunkOfRows& chunk) {
    const int64_t n = logits.size(0);
    const int64_t* const target = chunk.target.const_data_ptr<int64_t>();
    for (int64_t i = 0; i < n; ++i)
      check(target[i] < chunk.V, "[linear_cross_entropy] target ", target[i],
            " is not below V = ", chunk.V);
    with_element("linear_cross_entropy", logits.scalar_type(), [&](auto element) {
      using Io = decltype(element);
      using R = kernels::rows::Real<Io>;
      const kernels::rows::CrossEntropy<Io> a{static_cast<Io*>(logits.mutable_data_ptr()),
                                              target,
                                              chunk.loss.mutable_data_ptr<R>(),
                                              chunk.right.mutable_data_ptr<R>(),
                                              chunk.V,
                                              R(chunk.share),
                                              chunk.gradient};
      Ranges(n, chunk.V).each([&](int64_t, int64_t first, int64_t last) {
        kernels::rows::table<Io>().cross_entropy(a, first, last);
      });
    });
  }

  // The CPU has no product of bfloat16 that is left in float32.
  static void add_product(Tensor& sum, const Tensor& a, const Tensor& b, bool first) {
    const auto type = sum.scalar_type();
    at::addmm_out(sum, sum, a.to(type).t(), b.to(type), first ? 0 : 1, 1);
  }

  // One after the other, in double: the same bits whatever the number of threads.
  static void add_up(const Tensor& loss, const Tensor& right, double share,
                     LinearCrossEntropyResult& out) {
    const auto total = [](const Tensor& x) {
      const Tensor all = x.to(at::kDouble);
      const double* const at = all.const_data_ptr<double>();
      double sum = 0;
      for (int64_t i = 0; i < all.numel(); ++i) sum += at[i];
      return sum;
    };
    out.loss.fill_(share * total(loss)), out.right.fill_(total(right));
  }
};

TORCH_LIBRARY_FRAGMENT(lrnn, m) { cpu_back_end<LossInChunks<LossOnCpu>>(m); }

}  // namespace
}  // namespace lrnn::ops
