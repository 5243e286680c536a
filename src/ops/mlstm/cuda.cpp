#include "kernels/cuda/mlstm/mlstm.h"
#include "ops/cuda/stream.h"
#include "ops/diagonal/diagonal.h"
#include "ops/mlstm/fill.h"
#include "ops/torch.h"

// The mLSTM cell on CUDA tensors: in chunks where they fit, with Hopper's products or those of
// every chip; else a kernel for its gates, the diagonal recurrence for C and n together (n is the
// column whose values are 1), and plain torch between.
namespace lrnn::ops::cuda {
namespace {

enum class Way : uint8_t { kHopper, kChunks, kDiagonal };

// Nothing but sizes may enter: backward must choose as forward did.
Way way_of(const Mlstm& in) {
  kernels::MlstmInputs p;
  fill(p, in);
  const bool small = kernels::cuda::mlstm_chunk_fits(p);
  // Small heads and short sequences are faster in one kernel each way.
  const bool many = p.B * p.T >= 128 * p.S && kernels::cuda::mlstm_chunk_size(p) != 32;
  if (kernels::cuda::mlstm_hopper_fits(p) && (!small || many)) return Way::kHopper;
  return small ? Way::kChunks : Way::kDiagonal;
}

// Rows as the copy engine takes them: on 16 bytes, and each once.
Tensor on_packs(const Tensor& x) {
  bool on = reinterpret_cast<uintptr_t>(x.const_data_ptr()) % 16 == 0 && x.stride(-1) == 1;
  for (int64_t d = 0; d + 1 < x.dim(); ++d)
    on &= x.size(d) == 1 || (x.stride(d) > 0 && x.stride(d) * x.element_size() % 16 == 0);
  return on ? x : x.clone(at::MemoryFormat::Contiguous);
}
Mlstm on_packs(Mlstm in) {
  in.q = on_packs(in.q), in.k = on_packs(in.k), in.v = on_packs(in.v);
  return in;
}

// The last way. All wide; C and n are one state [..,V+1].
struct MlstmByDiagonal {
  Tensor q, k, v, state, all_m, log_forget, log_input, final_m;
  kernels::cuda::MlstmGates p;
  int64_t K, V;
  double scale, eps;
  Tensor cu_seqlens;

  MlstmByDiagonal(const Mlstm& in, const OnDevice& on)
      : K(in.q.size(3)),
        V(in.v.size(3)),
        scale(scale_of(in.scale, in.k)),
        eps(in.eps),
        cu_seqlens(in.cu_seqlens) {
    const auto type = wide_type(in.q);
    q = in.q.to(type), k = in.k.to(type);
    p.type = kernel_type(in.i);
    p.B = p.S = q.size(0), p.T = q.size(1), p.H = q.size(2);
    v = at::cat({in.v.to(type), at::ones({1}, in.i.options()).expand({p.B, p.T, p.H, 1})}, -1);
    if (in.state.C.defined()) state = at::cat({in.state.C, in.state.n.unsqueeze(-1)}, -1);
    p.first = data_or_null(in.state.m);
    p.i = in.i.const_data_ptr(), p.f = in.f.const_data_ptr();
    if (cu_seqlens.defined())
      p.S = cu_seqlens.size(0) - 1, p.cu_seqlens = cu_seqlens.const_data_ptr<int64_t>();
    all_m = at::empty_like(in.i), log_forget = at::empty_like(in.i);
    log_input = at::empty_like(in.i), final_m = at::empty({p.S, p.H}, in.i.options());
    kernels::cuda::mlstm_gates(p, all_m.data_ptr(), log_forget.data_ptr(), log_input.data_ptr(),
                               final_m.data_ptr(), on.stream());
  }
  Tensor factor() const { return (log_input.exp() * scale).unsqueeze(-1); }  // of the keys
  Diagonal diagonal() const {
    return {.op = "mlstm",
            .q = q,
            .k = k * factor(),
            .v = v,
            .log_decay = log_forget.unsqueeze(-1).expand({p.B, p.T, p.H, K}).contiguous(),
            .kk = {},
            .rate = {},
            .state = state,
            .scale = 1,
            .negative = false,
            .cu_seqlens = cu_seqlens};
  }
  // What h is divided by [B,T,H], from n . q.
  Tensor size(const Tensor& along) const {
    return at::maximum(along.abs(), all_m.neg().exp()).add_(eps);
  }
};

void forward_by_diagonal(const Mlstm& in, MlstmResult& out, std::vector<Tensor>& kept,
                         const OnDevice& on) {
  const MlstmByDiagonal by(in, on);
  const auto& p = by.p;
  const Diagonal diagonal = by.diagonal();
  const auto wide = in.i.options();
  const DiagonalResult read{at::empty({p.B, p.T, p.H, by.V + 1}, wide),
                            at::empty({p.S, p.H, by.K, by.V + 1}, wide)};
  if (!kept.empty()) kept = DiagonalCuda::keep(diagonal);
  DiagonalCuda::forward(diagonal, read, kept);
  if (!kept.empty()) kept.push_back(read.o);
  out.h = (read.o.narrow(-1, 0, by.V) / by.size(read.o.select(-1, by.V)).unsqueeze(-1))
              .to(in.q.scalar_type());
  out.state.C = read.state.narrow(-1, 0, by.V).contiguous();
  out.state.n = read.state.select(-1, by.V).contiguous();
  out.state.m = by.final_m;
}

// The gradients of what was read and of m, from that of h = read / size,
// size = max(|n . q|, exp(-m)) + eps.
std::pair<Tensor, Tensor> through_size(const MlstmByDiagonal& by, const Tensor& dh,
                                       const Tensor& read) {
  if (!dh.defined()) return {Tensor(), at::zeros_like(by.all_m)};
  const auto wide = by.all_m.options();
  const Tensor d = dh.to(by.all_m.scalar_type()), along = read.select(-1, by.V),
               inverse = by.size(along).reciprocal().unsqueeze(-1);
  const Tensor shrink = (d * read.narrow(-1, 0, by.V) * inverse).sum(-1);  // -dsize size
  const Tensor by_along = along.abs() >= by.all_m.neg().exp();
  const Tensor dalong =
      at::where(by_along, shrink.neg() * along.sign() * inverse.squeeze(-1), at::zeros({}, wide));
  // exp(-m) / size, without an infinity where m is far below zero.
  const Tensor dm =
      at::where(by_along, at::zeros({}, wide), shrink / (by.all_m.exp() * by.eps + 1));
  return {at::cat({d * inverse, dalong.unsqueeze(-1)}, -1), dm};
}

void backward_by_diagonal(const Backward<Mlstm>& b, Mlstm& grads, const OnDevice& on) {
  const MlstmByDiagonal by(b.in, on);
  const auto& p = by.p;
  const int64_t V = by.V;
  const auto wide = b.in.i.options();
  const auto [dread, dm] = through_size(by, b.d.h, b.kept[1]);
  DiagonalResult d{dread, {}};
  if (b.d.state.C.defined() || b.d.state.n.defined()) {
    const auto or_zeros = [&](const Tensor& x, at::IntArrayRef sizes) {
      return x.defined() ? x : at::zeros(sizes, wide);
    };
    d.state = at::cat({or_zeros(b.d.state.C, {p.S, p.H, by.K, V}),
                       or_zeros(b.d.state.n, {p.S, p.H, by.K}).unsqueeze(-1)},
                      -1);
  }
  const Diagonal in = by.diagonal();
  const auto like = [](const Tensor& x) {
    return x.defined() ? at::empty(x.sizes(), x.options()) : Tensor();
  };
  const Diagonal to{.op = in.op,
                    .q = dread.defined() ? like(in.q) : Tensor(),
                    .k = like(in.k),
                    .v = like(in.v),
                    .log_decay = like(in.log_decay),
                    .kk = {},
                    .rate = {},
                    .state = like(in.state),
                    .cu_seqlens = {}};
  DiagonalCuda::backward(in, d, b.kept, to);
  const Tensor factor = by.factor(), dlog_forget = to.log_decay.sum(-1),
               dlog_input = (to.k * by.k * factor).sum(-1);
  kernels::cuda::mlstm_gate_gradients(
      {p, by.all_m.const_data_ptr(), dm.const_data_ptr(), dlog_forget.const_data_ptr(),
       dlog_input.const_data_ptr(), data_or_null(b.d.state.m), grads.i.data_ptr(),
       grads.f.data_ptr(), data_or_null(grads.state.m)},
      on.stream());
  const auto type = b.in.q.scalar_type();
  grads.q = to.q.defined() ? to.q.to(type) : at::zeros_like(b.in.q);
  grads.k = (to.k * factor).to(type), grads.v = to.v.narrow(-1, 0, V).to(type).contiguous();
  if (!to.state.defined()) return;
  grads.state.C = to.state.narrow(-1, 0, V).contiguous();
  grads.state.n = to.state.select(-1, V).contiguous();
}

struct MlstmCuda {
  using In = Mlstm;

  static std::vector<Tensor> keep(const In& in) {
    const OnDevice on(in.q);
    kernels::MlstmInputs p;
    fill(p, in);
    switch (way_of(in)) {
      case Way::kHopper: return {at::empty({kernels::cuda::mlstm_hopper_kept(p)}, in.i.options())};
      case Way::kChunks: return {at::empty({kernels::cuda::mlstm_chunk_kept(p)}, in.i.options())};
      case Way::kDiagonal: break;
    }
    return {Tensor()};  // forward makes its own
  }
  static void forward(const In& in, MlstmResult& out, std::vector<Tensor>& kept) {
    const OnDevice on(in.q);
    const Way way = way_of(in);
    if (way == Way::kDiagonal) return forward_by_diagonal(in, out, kept, on);
    const Mlstm from = way == Way::kHopper ? on_packs(in) : in;
    kernels::MlstmForward p;
    fill(p, from);
    fill_results(p, out);
    if (!kept.empty() && kept[0].numel() > 0) p.states = kept[0].data_ptr();
    if (way == Way::kChunks) return kernels::cuda::mlstm_chunk_forward(p, on.stream());
    const Tensor work = at::empty({kernels::cuda::mlstm_hopper_work(p)}, in.i.options());
    kernels::cuda::mlstm_hopper_forward(p, work.data_ptr(), on.stream());
  }
  static void backward(const Backward<In>& b, In& grads) {
    const OnDevice on(b.in.q);
    const Way way = way_of(b.in);
    if (way == Way::kDiagonal) return backward_by_diagonal(b, grads, on);
    const Mlstm from = way == Way::kHopper ? on_packs(b.in) : b.in;
    kernels::MlstmBackward p;
    fill(p, from);
    fill_gradients(p, b, grads);
    if (way == Way::kChunks) return kernels::cuda::mlstm_chunk_backward(p, on.stream());
    const Tensor dh = b.d.h.defined() ? on_packs(b.d.h) : at::zeros_like(from.v);
    p.dh = kernel_rows(dh);
    const Tensor work = at::empty({kernels::cuda::mlstm_hopper_backward_work(p)}, b.in.i.options());
    kernels::cuda::mlstm_hopper_backward(p, work.data_ptr(), on.stream());
  }
};

}  // namespace

TORCH_LIBRARY_FRAGMENT(lrnn, m) { back_end<MlstmCuda>(m, c10::DispatchKey::CUDA); }

}  // namespace lrnn::ops::cuda
