#include <utility>

#include "kernels/cuda/chip.h"
#include "kernels/cuda/delta_product/choose.h"
#include "kernels/cuda/delta_product/delta_product.h"
#include "ops/back_end.h"
#include "ops/cuda/stream.h"
#include "ops/delta_product/delta_product.h"
#include "ops/torch.h"

// Tensors in, pointers out. Which of eight methods it is follows from sizes and accuracy alone
// (kernels/cuda/delta_product/choose.h), so that backward takes forward's way back.
namespace lrnn::ops::cuda {
namespace {

int chunk_of(const kernels::DeltaProductInputs& p) {
  const int chunk = kernels::cuda::exact_chunk(p.V, p.type);
  check(chunk > 0, "[delta_product] the GPU kernels have no room for ", p.V, " value channels");
  return chunk;
}

using kernels::cuda::Method;

// Rows that can be fetched 16 bytes at a time.
Tensor on_16_bytes(const Tensor& x) {
  const int64_t last = x.dim() - 2, piece = 16 / x.element_size();
  bool ok = x.stride(-1) == 1 && reinterpret_cast<uintptr_t>(x.const_data_ptr()) % 16 == 0;
  for (int64_t d = 0; d <= last; ++d) ok = ok && (x.size(d) == 1 || x.stride(d) % piece == 0);
  return ok ? x : x.clone(at::MemoryFormat::Contiguous);
}
// Those with micro-steps evenly spaced too, as the chunk kernels want them.
Tensor for_chunks(const Tensor& x) {
  const bool even = x.dim() != 5 || x.size(2) == 1 || x.stride(1) == x.size(2) * x.stride(2);
  return on_16_bytes(even ? x : x.contiguous());
}
Tensor for_method(const Tensor& x, Method method) {
  return method == Method::kExact   ? with_rows(x)
         : method == Method::kSmall ? on_16_bytes(x)
                                    : for_chunks(x);
}
bool in_chunks(Method method) { return method == Method::kFast || method == Method::kAccurate; }
bool keeps_bfloat16(Method method) { return method != Method::kExact && method != Method::kSmall; }

// One token has one micro-step: the spacing of micro-steps is then that of tokens.
kernels::Rows chunk_rows(const Tensor& x) {
  kernels::Rows r = kernel_rows(x);
  if (x.dim() == 5 && x.size(2) == 1) r.step = r.token;
  return r;
}

kernels::cuda::Segments segments_of(const kernels::DeltaProductInputs& p) {
  return kernels::cuda::choose_segments(p, kernels::cuda::chip().processors);
}

// What the chunk kernels keep from forward for backward, in one piece of bfloat16: the states, then
// T, then P, unless the sweeps make it themselves, the vectors and the maps of segments; where
// operands are split, the low halves (what rounding left) of the states, the errors, T and P, too.
struct Kept {
  Tensor all;
  uint16_t* states = nullptr;
  kernels::cuda::ChunkWork work;
  kernels::cuda::Segments segments;

  static int64_t size(const kernels::DeltaProductInputs& p, bool with_states, bool split) {
    const int64_t heads = kernels::cuda::chunk_count(p) * p.H, parts = split ? 2 : 1;
    const int64_t rows = with_P(p, split) ? kernels::cuda::chunk_query_rows(p.N) : 0;
    return heads * ((with_states ? parts * kernels::cuda::state_size(p) : 0) +
                    (split ? 3 : 1) * 64 * 64 + parts * rows * 64 +
                    2 * 64 * (with_logs(p, split) ? 6 : 5)) +
           (with_states && split ? errors_size(p) : 0) + 2 * maps_size(p);
  }
  static int64_t errors_size(const kernels::DeltaProductInputs& p) {
    return p.B * p.H * p.T * p.N * p.V;
  }
  static int64_t maps_size(const kernels::DeltaProductInputs& p) {
    return kernels::cuda::segment_slots(p, segments_of(p)) * p.H *
           kernels::cuda::segment_map_size(p);
  }
  static bool with_logs(const kernels::DeltaProductInputs& p, bool split) {
    return p.log_gate && kernels::cuda::sweeps_make_P(p, split);
  }
  static bool with_P(const kernels::DeltaProductInputs& p, bool split) {
    return p.q.data && !kernels::cuda::sweeps_make_P(p, split);
  }
  // `all` from forward, or room for it.
  Kept(const kernels::DeltaProductInputs& p, const Tensor& all_, bool with_states, bool split)
      : all(all_), segments(segments_of(p)) {
    const int64_t heads = kernels::cuda::chunk_count(p) * p.H;
    auto* at = static_cast<uint16_t*>(all.data_ptr());
    const auto next = [&](int64_t size) { return std::exchange(at, at + heads * size); };
    work.rows = kernels::cuda::chunk_query_rows(p.N), work.split = split;
    if (with_states) states = next(kernels::cuda::state_size(p));
    if (with_states && split) {
      work.states_lo = next(kernels::cuda::state_size(p));
      work.error_lo = std::exchange(at, at + errors_size(p));
    }
    work.T = next(64 * 64);
    if (split) work.T_lo = next(2 * 64 * 64);
    const bool P = with_P(p, split);
    if (P) work.P = next(work.rows * 64);
    if (P && split) work.P_lo = next(work.rows * 64);
    work.vectors = reinterpret_cast<float*>(next(2 * 5 * 64));
    if (with_logs(p, split)) work.logs = reinterpret_cast<float*>(next(2 * 64));
    segments.maps = reinterpret_cast<float*>(at);
  }
  // Room for the states between segments.
  Tensor between(const kernels::DeltaProductInputs& p) {
    const int64_t slots = kernels::cuda::segment_slots(p, segments);
    const Tensor room =
        at::empty({slots, p.H, kernels::cuda::state_size(p)}, all.options().dtype(torch::kFloat32));
    segments.between = static_cast<float*>(room.data_ptr());
    return room;
  }
};

// What chunks with gates of key channels keep, and where: the states; where operands are split,
// what rounding left of them and of the errors.
int64_t channel_states_size(const kernels::DeltaProductInputs& p) {
  return kernels::cuda::chunk_count(p) * p.H * p.V * p.K;
}
int64_t channel_kept_size(const kernels::DeltaProductInputs& p, bool split) {
  return (split ? 2 : 1) * channel_states_size(p) + (split ? Kept::errors_size(p) : 0);
}
kernels::cuda::ChannelChunks channel_chunks(const kernels::DeltaProductInputs& p,
                                            const Tensor& kept, bool split) {
  kernels::cuda::ChannelChunks w;
  w.split = split;
  if (!kept.defined()) return w;
  w.states = static_cast<uint16_t*>(kept.data_ptr());
  if (split)
    w.states_lo = w.states + channel_states_size(p),
    w.error_lo = w.states_lo + channel_states_size(p);
  return w;
}
// The matrices of all chunks, made anew in either direction.
Tensor channel_work(const kernels::DeltaProductInputs& p, kernels::cuda::ChannelChunks& w,
                    const Tensor& like, void* stream) {
  const Tensor work =
      at::empty({kernels::cuda::channel_work_size(p, w.split)}, like.options().dtype(torch::kByte));
  w.work = work.data_ptr();
  kernels::cuda::channel_prepare(p, w, stream);
  return work;
}

// What small heads in chunks keep: the states, and what rounding left of them and of the errors.
int64_t small_kept_size(const kernels::DeltaProductInputs& p) {
  return 2 * kernels::cuda::small_chunks_slots(p) * p.H * p.V * p.K + Kept::errors_size(p);
}
kernels::cuda::SmallKept small_kept(const kernels::DeltaProductInputs& p, const Tensor& error,
                                    const Tensor& states) {
  auto* const at = static_cast<uint16_t*>(states.data_ptr());
  const int64_t half = kernels::cuda::small_chunks_slots(p) * p.H * p.V * p.K;
  return {at, at + half, static_cast<uint16_t*>(error.data_ptr()), at + 2 * half};
}

// Values that forward keeps for backward, beside the errors.
int64_t kept_size(const kernels::DeltaProductInputs& p, Method method) {
  switch (method) {
    case Method::kExact: return kernels::cuda::exact_slots(p, chunk_of(p)) * p.H * p.K * p.V;
    case Method::kSmall: return kernels::cuda::small_slots(p) * p.H * p.K * p.V;
    case Method::kSmallChunks: return small_kept_size(p);
    case Method::kOneChunk: return Kept::errors_size(p);
    case Method::kAccurate: return Kept::size(p, true, true);
    case Method::kFast: return Kept::size(p, true, false);
    case Method::kAccurateChannels: return channel_kept_size(p, true);
    case Method::kFastChannels: return channel_kept_size(p, false);
  }
  return 0;
}

uint16_t* narrow(const Tensor& x) { return static_cast<uint16_t*>(x.data_ptr()); }

// Inputs where the method wants them, and their pointers.
struct Call {
  DeltaProduct in;
  Method method;

  Call(const DeltaProduct& given, kernels::DeltaProductInputs& p) : in(given) {
    fill(p, in);
    check(p.T * p.N < (int64_t(1) << 31),
          "[delta_product] the GPU kernels follow up to 2^31 updates, got T = ", p.T,
          " and N = ", p.N);
    method = kernels::cuda::choose(p, in.accuracy);
    in.k = for_method(in.k, method), p.k = {chunk_rows(in.k), group()};
    if (in.q.defined()) in.q = for_method(in.q, method), p.q = {kernel_rows(in.q), group()};
  }
  int64_t group() const { return heads_per_key(in); }
};

// The gradient of shared keys or queries from those of every head.
void add_heads(const Tensor& every, const Tensor& shared, void* stream) {
  if (every.is_same(shared)) return;
  kernels::cuda::SharedGradient p;
  p.type = kernel_type(shared), p.K = shared.size(-1), p.group = every.size(-2) / shared.size(-2);
  p.rows = shared.numel() / p.K;
  p.heads = every.const_data_ptr(), p.sums = shared.data_ptr();
  kernels::cuda::add_heads(p, stream);
}

struct DeltaProductCuda {
  using In = DeltaProduct;

  static std::vector<Tensor> keep(const In& in) {
    const OnDevice on(in.k);
    kernels::DeltaProductInputs p;
    const Call call(in, p);
    const auto options = options_of(in.k, keeps_bfloat16(call.method) ? Kind::kIo : Kind::kWide);
    return {at::empty({p.B, p.H, p.T, p.N, p.V}, options),
            at::empty({kept_size(p, call.method)}, options)};
  }
  static void forward(const In& in, DeltaProductResult& out, std::vector<Tensor>& kept);
  static void backward(const Backward<In>& b, In& grads);

 private:
  static void run_backward(kernels::DeltaProductBackward& p, const Call& call,
                           const std::vector<Tensor>& kept, void* stream);
  static void forward_in_chunks(kernels::DeltaProductForward& p, const Call& call,
                                const std::vector<Tensor>& kept, void* stream);
  static void backward_in_chunks(kernels::DeltaProductBackward& p, const Call& call,
                                 const Tensor& states, void* stream);
  static void forward_by_channels(kernels::DeltaProductForward& p, const Call& call,
                                  const std::vector<Tensor>& kept, void* stream);
  static void backward_by_channels(kernels::DeltaProductBackward& p, const Call& call,
                                   const Tensor& states, void* stream);
};

void DeltaProductCuda::forward(const In& in, DeltaProductResult& out, std::vector<Tensor>& kept) {
  const OnDevice on(in.k);
  kernels::DeltaProductForward p;
  const Call call(in, p);
  const Tensor v = for_method(in.v, call.method);
  const bool save = !kept.empty();
  p.v = chunk_rows(v);
  if (out.o.defined()) p.o = kernel_rows(out.o);
  p.final_state = out.state.data_ptr();
  if (save) p.error = kept[0].data_ptr(), p.states = kept[1].data_ptr();
  switch (call.method) {
    case Method::kExact:
      // Who asks for exact wants the bits of longer pieces.
      if (!save && call.in.accuracy != "exact" && kernels::cuda::few_steps_fit(p))
        return kernels::cuda::few_steps_forward(p, on.stream());
      return kernels::cuda::exact_forward(p, chunk_of(p), on.stream());
    case Method::kSmall: return kernels::cuda::small_forward(p, on.stream());
    case Method::kSmallChunks:
      return kernels::cuda::small_chunks_forward(
          p, save ? small_kept(p, kept[0], kept[1]) : kernels::cuda::SmallKept(), on.stream());
    case Method::kOneChunk:
      return kernels::cuda::one_chunk_forward(p, save ? narrow(kept[1]) : nullptr, on.stream());
    case Method::kAccurate:
    case Method::kFast: return forward_in_chunks(p, call, kept, on.stream());
    case Method::kAccurateChannels:
    case Method::kFastChannels: return forward_by_channels(p, call, kept, on.stream());
  }
}

void DeltaProductCuda::forward_in_chunks(kernels::DeltaProductForward& p, const Call& call,
                                         const std::vector<Tensor>& kept, void* stream) {
  const bool split = call.method == Method::kAccurate, save = !kept.empty();
  if (!save &&
      kernels::cuda::choose_fused(p, call.method, segments_of(p),
                                  kernels::cuda::chip().processors) &&
      kernels::cuda::chunk_fused_forward(p, stream))
    return;
  const Tensor memory =
      save ? kept[1] : at::empty({Kept::size(p, false, split)}, call.in.k.options());
  Kept pieces(p, memory, save, split);
  p.states = pieces.states;
  const Tensor between = pieces.between(p);
  kernels::cuda::chunk_prepare(p, pieces.work, stream);
  kernels::cuda::chunk_forward(p, pieces.work, pieces.segments, stream);
}

void DeltaProductCuda::backward(const Backward<In>& b, In& grads) {
  const OnDevice on(b.in.k);
  kernels::DeltaProductBackward p;
  const Call call(b.in, p);
  const Tensor dq = of_every_head(grads.q, p.H), dk = of_every_head(grads.k, p.H);
  Tensor d_o;
  if (dq.defined()) {
    d_o = for_method(b.d.o, call.method);
    p.d_o = kernel_rows(d_o), p.dq = kernel_rows(dq);
  }
  p.d_final_state = data_or_null(b.d.state);
  p.error = b.kept[0].const_data_ptr(), p.states = b.kept[1].const_data_ptr();
  p.dk = chunk_rows(dk), p.dv = chunk_rows(grads.v);
  p.dbeta = grads.beta.data_ptr();
  p.dlog_gate = data_or_null(grads.log_gate), p.dstate = data_or_null(grads.state);
  run_backward(p, call, b.kept, on.stream());
  add_heads(dq, grads.q, on.stream()), add_heads(dk, grads.k, on.stream());
}

void DeltaProductCuda::run_backward(kernels::DeltaProductBackward& p, const Call& call,
                                    const std::vector<Tensor>& kept, void* stream) {
  const Tensor &error = kept[0], &states = kept[1];
  const bool chunks = in_chunks(call.method);
  if (!p.dq.data && !chunks) p.q = {};
  if (chunks) return backward_in_chunks(p, call, states, stream);
  switch (call.method) {
    case Method::kExact: {
      const Tensor y = at::empty_like(error), dstates = at::empty_like(states);
      return kernels::cuda::exact_backward(p, chunk_of(p), y.data_ptr(), dstates.data_ptr(),
                                           stream);
    }
    case Method::kSmall: {
      const bool two_walks = p.log_gate && p.type == kernels::Type::kBFloat16;
      const Tensor workspace =
          at::empty({two_walks ? p.B * p.H * p.T * p.N * (p.V + p.K) : 0}, error.options());
      return kernels::cuda::small_backward(p, workspace.data_ptr<float>(), stream);
    }
    case Method::kSmallChunks:
      return kernels::cuda::small_chunks_backward(p, small_kept(p, error, states), stream);
    case Method::kAccurateChannels:
    case Method::kFastChannels: return backward_by_channels(p, call, states, stream);
    default: return kernels::cuda::one_chunk_backward(p, narrow(states), stream);
  }
}

void DeltaProductCuda::backward_in_chunks(kernels::DeltaProductBackward& p, const Call& call,
                                          const Tensor& states, void* stream) {
  const bool split = call.method == Method::kAccurate;
  // P was kept where there is a q, even if o has no gradient.
  Kept kept(p, states, true, split);
  if (!p.dq.data) p.q.data = nullptr;
  const Tensor between = kept.between(p);
  const auto workspace = [&](int64_t size) { return at::empty({size}, call.in.k.options()); };
  auto dstates = kernels::cuda::lend_rows(p, split);
  const int64_t all = kernels::cuda::chunk_count(p) * p.H * kernels::cuda::state_size(p);
  const Tensor chunks = workspace(kernels::cuda::chunks_size(p, dstates)),
               ends = workspace(kernels::cuda::ends_size(p, dstates)),
               dstates_lo = workspace(split ? all : 0),
               dv_lo = workspace(split ? Kept::errors_size(p) : 0);
  dstates.chunks = narrow(chunks), dstates.ends = narrow(ends);
  kept.work.dstates_lo = narrow(dstates_lo), kept.work.dv_lo = narrow(dv_lo);
  p.states = kept.states;
  kernels::cuda::chunk_reverse(p, kept.work, kept.segments, dstates, stream);
  kernels::cuda::chunk_gradients(p, kept.work, dstates, stream);
}

void DeltaProductCuda::forward_by_channels(kernels::DeltaProductForward& p, const Call& call,
                                           const std::vector<Tensor>& kept, void* stream) {
  auto w = channel_chunks(p, kept.empty() ? Tensor() : kept[1],
                          call.method == Method::kAccurateChannels);
  const Tensor work = channel_work(p, w, call.in.k, stream);
  kernels::cuda::channel_forward(p, w, stream);
}

void DeltaProductCuda::backward_by_channels(kernels::DeltaProductBackward& p, const Call& call,
                                            const Tensor& states, void* stream) {
  const bool split = call.method == Method::kAccurateChannels;
  auto w = channel_chunks(p, states, split);
  const Tensor work = channel_work(p, w, call.in.k, stream);
  const auto workspace = [&](int64_t size) { return at::empty({size}, call.in.k.options()); };
  const Tensor dstates = workspace((split ? 2 : 1) * channel_states_size(p)),
               dv_lo = workspace(split ? Kept::errors_size(p) : 0);
  w.dstates = narrow(dstates), w.dstates_lo = w.dstates + (split ? channel_states_size(p) : 0);
  w.dv_lo = narrow(dv_lo);
  kernels::cuda::channel_reverse(p, w, stream);
  kernels::cuda::channel_gradients(p, w, stream);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(lrnn, m) { back_end<DeltaProductCuda>(m, c10::DispatchKey::CUDA); }

}  // namespace lrnn::ops::cuda
