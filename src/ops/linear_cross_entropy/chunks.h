#pragma once
#include <algorithm>

#include "ops/back_end.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.h"
#include "ops/torch.h"

// What the back ends share: the walk over chunks of rows. A device has
//
//   static int64_t columns(int64_t V);  // of logits in memory, V or more
//   // The losses of rows with a target and whether they are right, else 0. Logits become their
//   // gradient where it is wanted, zero in the columns behind V.
//   static void rows(const Tensor& logits, const ChunkOfRows& chunk);
//   // sum = a^T b, or sum += a^T b: a and b of one type, the sum float32 or float64.
//   static void add_product(Tensor& sum, const Tensor& a, const Tensor& b, bool first);
//   static void add_up(const Tensor& loss, const Tensor& right, double share, Result& out);
namespace lrnn::ops {

struct ChunkOfRows {
  int64_t V;
  const Tensor &target, &loss, &right;
  double share;
  bool gradient;
};

template <class Device> struct LossInChunks {
  using In = LinearCrossEntropy;
  static constexpr bool kAsGiven = true;  // targets are no bounds of sequences

  // dh and dweight, for an incoming gradient of 1.
  static std::vector<Tensor> keep(const In& in) {
    return {at::empty_symint(in.h.sym_sizes(), in.h.options()),
            at::empty_symint(in.weight.sym_sizes(), in.h.options().dtype(wide_type(in.h)))};
  }

  static void forward(const In& in, LinearCrossEntropyResult& out, std::vector<Tensor>& kept) {
    const bool gradient = !kept.empty();
    const Tensor h = in.h.contiguous(), target = in.target.to(h.device(), at::kLong).contiguous();
    const int64_t R = h.size(0), D = h.size(1), V = in.weight.size(0), wide = Device::columns(V);
    const Tensor weight = matrix(in.weight, wide, h.options());
    const auto sums = h.options().dtype(wide_type(h));
    const Tensor loss = at::empty({R}, sums), right = at::empty({R}, sums);
    const int64_t most = std::min(R, In::kRowsAtOnce);
    const Tensor room = at::empty({most, wide}, h.options());
    Tensor dweight;
    if (gradient) {
      dweight = wide == V ? kept[1] : at::empty({wide, D}, sums);
      if (R == 0) dweight.zero_();
    }
    for (int64_t first = 0; first < R; first += most) {
      const int64_t n = std::min(most, R - first);
      const auto part = [&](const Tensor& x) { return x.narrow(0, first, n); };
      Tensor logits = room.narrow(0, 0, n);
      at::mm_out(logits, part(h), weight.t());
      Device::rows(logits, {V, part(target), part(loss), part(right), in.share, gradient});
      if (!gradient) continue;
      Tensor dh = part(kept[0]);
      at::mm_out(dh, logits, weight);
      Device::add_product(dweight, logits, part(h), first == 0);
    }
    if (gradient && wide != V) kept[1] = dweight.narrow(0, 0, V);
    Device::add_up(loss, right, in.share, out);
  }

  static void backward(const Backward<In>& b, In& grads) {
    for (auto [grad, at_one] : {std::pair(&grads.h, 0), std::pair(&grads.weight, 1)})
      if (b.d.loss.defined())
        at::mul_out(*grad, b.kept[size_t(at_one)], b.d.loss);
      else
        grad->zero_();
  }

 private:
  // As products read it, with zeros below where the device wants more rows.
  static Tensor matrix(const Tensor& weight, int64_t rows, const torch::TensorOptions& options) {
    if (rows == weight.size(0)) return weight.to(options.dtype()).contiguous();
    const Tensor out = at::empty({rows, weight.size(1)}, options);
    out.narrow(0, 0, weight.size(0)).copy_(weight);
    out.narrow(0, weight.size(0), rows - weight.size(0)).zero_();
    return out;
  }
};

}  // namespace lrnn::ops
