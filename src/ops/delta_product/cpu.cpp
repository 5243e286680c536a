#include "kernels/delta_product.h"
#include "ops/by_sequence.h"
#include "ops/delta_product/delta_product.h"
#include "ops/torch.h"

namespace lrnn::ops {

int64_t heads_per_key(const DeltaProduct& in) {
  const int64_t G = in.k.size(3);
  return G > 0 ? in.beta.size(3) / G : 1;
}

void fill(kernels::DeltaProductInputs& p, const DeltaProduct& in) {
  p.type = kernel_type(in.k);
  p.B = p.S = in.k.size(0), p.T = in.k.size(1), p.N = in.k.size(2), p.H = in.beta.size(3);
  p.K = in.k.size(4), p.V = in.v.size(4);
  const int64_t group = heads_per_key(in);
  check(p.H < (int64_t(1) << 29) / group, "[delta_product] ", in.k.size(3), " key heads for ", p.H,
        " value heads are too few");
  p.scale = scale_of(in.scale, in.k);
  if (in.q.defined()) p.q = {kernel_rows(in.q), group};
  p.k = {kernel_rows(in.k), group};
  p.beta = in.beta.const_data_ptr();
  p.log_gate = data_or_null(in.log_gate), p.state = data_or_null(in.state);
  p.channels = in.gates_channels();
  if (in.cu_seqlens.defined())
    p.S = in.cu_seqlens.size(0) - 1, p.cu_seqlens = in.cu_seqlens.const_data_ptr<int64_t>();
}

Tensor of_every_head(const Tensor& shared, int64_t H) {
  if (!shared.defined() || shared.size(-2) == H) return shared;
  auto sizes = shared.sizes().vec();
  sizes[sizes.size() - 2] = H;
  return at::empty(sizes, shared.options());
}

namespace {

// Exact, whatever accuracy is asked for.
struct DeltaProductCpu {
  using In = DeltaProduct;

  // The errors v - S^T k of every micro-step, and the state at every segment.
  static std::vector<Tensor> keep(const In& in) {
    const auto k = in.k.sym_sizes();
    const c10::SymInt B = k[0], T = k[1], N = k[2], H = in.v.sym_size(3), K = k[4],
                      V = in.v.sym_size(4);
    const auto segment = kernels::delta_product_segment(N.guard_int(__FILE__, __LINE__));
    const auto wide = options_of(in.k, Kind::kWide);
    return {at::empty_symint({B, H, T, N, V}, wide),
            at::empty_symint({B, H, T / segment, K, V}, wide)};
  }

  static void forward(const In& in, DeltaProductResult& out, std::vector<Tensor>& kept) {
    kernels::DeltaProductForward p;
    fill(p, in);
    p.v = kernel_rows(in.v);
    if (out.o.defined()) p.o = kernel_rows(out.o);
    p.final_state = out.state.data_ptr();
    if (!kept.empty()) p.error = kept[0].data_ptr();
    if (!kept.empty() && kept[1].numel() > 0) p.states = kept[1].data_ptr();
    kernels::delta_product_forward(p, parallel());
  }

  static void backward(const Backward<In>& b, In& grads) {
    kernels::DeltaProductBackward p;
    fill(p, b.in);
    const Tensor dq = of_every_head(grads.q, p.H), dk = of_every_head(grads.k, p.H);
    if (!dq.defined()) p.q = {};
    if (dq.defined()) p.d_o = kernel_rows(b.d.o), p.dq = kernel_rows(dq);
    p.d_final_state = data_or_null(b.d.state);
    p.error = b.kept[0].const_data_ptr(), p.states = b.kept[1].const_data_ptr();
    p.dk = kernel_rows(dk), p.dv = kernel_rows(grads.v);
    p.dbeta = grads.beta.data_ptr();
    p.dlog_gate = data_or_null(grads.log_gate), p.dstate = data_or_null(grads.state);
    kernels::delta_product_backward(p, parallel());
    add_heads(dq, grads.q), add_heads(dk, grads.k);
  }

 private:
  // In the order of the heads.
  static void add_heads(const Tensor& every, const Tensor& shared) {
    if (every.is_same(shared)) return;
    const int64_t G = shared.size(-2), group = every.size(-2) / G;
    const Tensor heads = every.unflatten(-2, {G, group});
    Tensor sum = heads.select(-2, 0).to(wide_type(shared));
    for (int64_t i = 1; i < group; ++i) sum = sum + heads.select(-2, i);
    shared.copy_(sum);
  }
};

TORCH_LIBRARY_FRAGMENT(lrnn, m) { cpu_back_end<DeltaProductCpu>(m); }

}  // namespace
}  // namespace lrnn::ops
