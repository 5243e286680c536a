#include "kernels/cuda/delta_product/delta_product.h"

#include <utility>

#include "base/error.h"
#include "kernels/cuda/delta_product/choose.h"
#include "ops/cuda/stream.h"
#include "ops/delta_product/inner.h"
#include "ops/torch.h"

// The CUDA kernels of the inner ops: tensors in, pointers out. What forward saves tells backward
// which kernel it was.
namespace lrnn::ops::cuda {
namespace {

using torch::Tensor;

kernels::Type type_of(const Tensor& x) {
  return x.scalar_type() == torch::kFloat64   ? kernels::Type::kFloat64
         : x.scalar_type() == torch::kFloat32 ? kernels::Type::kFloat32
                                              : kernels::Type::kBFloat16;
}

// [B,T,N,H,D] or [B,T,H,D].
kernels::Rows rows(const Tensor& x) {
  if (x.dim() == 5) return {x.data_ptr(), x.stride(0), x.stride(1), x.stride(2), x.stride(3)};
  return {x.data_ptr(), x.stride(0), x.stride(1), 0, x.stride(2)};
}
Tensor with_rows(const Tensor& x) { return x.stride(-1) == 1 ? x : x.contiguous(); }
Tensor none(const Tensor& like) { return at::empty({0}, like.options()); }

// Offsets that lie on the CPU are checked there; those on the GPU are not read back, which would
// stop the stream: the kernels stay inside the tensors whatever they say.
Tensor offsets(const MaybeTensor& cu_seqlens, const Tensor& k) {
  if (!cu_seqlens) return {};
  const Tensor cu = cu_seqlens->contiguous();
  if (!cu.device().is_cpu()) return cu;
  const int64_t *const at = cu.const_data_ptr<int64_t>(), S = cu.size(0) - 1, T = k.size(1);
  check(at[0] == 0 && at[S] == T, "[delta_product] cu_seqlens must run from 0 to T = ", T, ", got ",
        at[0], " to ", at[S]);
  for (int64_t s = 0; s < S; ++s)
    check(at[s] <= at[s + 1], "[delta_product] cu_seqlens must not decrease, got ", at[s],
          " before ", at[s + 1]);
  return cu.to(k.device());
}

// Inputs in the form the kernels read, kept alive together.
struct Inputs {
  Tensor q, k, beta, log_gate, state, cu_seqlens;

  Inputs(const MaybeTensor& q_, const Tensor& k_, const Tensor& beta_, const MaybeTensor& log_gate_,
         const MaybeTensor& state_, const MaybeTensor& cu_seqlens_)
      : k(with_rows(k_)), cu_seqlens(offsets(cu_seqlens_, k_)) {
    const auto wide = wide_type(k);
    if (q_) q = with_rows(*q_);
    beta = beta_.to(wide).contiguous();
    if (log_gate_) log_gate = log_gate_->to(wide).contiguous();
    if (state_) state = state_->to(wide).contiguous();
  }

  void fill(kernels::DeltaProductInputs& p, int64_t V, double scale) const {
    p.type = type_of(k);
    p.B = k.size(0), p.T = k.size(1), p.N = k.size(2), p.H = k.size(3), p.K = k.size(4), p.V = V;
    check(p.T * p.N < (int64_t(1) << 31),
          "[delta_product] the GPU kernels follow up to 2^31 updates,", " got T = ", p.T,
          " and N = ", p.N);
    p.S = cu_seqlens.defined() ? cu_seqlens.size(0) - 1 : p.B;
    p.scale = scale;
    if (q.defined()) p.q = rows(q);
    p.k = rows(k);
    p.beta = beta.const_data_ptr();
    if (log_gate.defined()) p.log_gate = log_gate.const_data_ptr();
    if (state.defined()) p.state = state.const_data_ptr();
    if (cu_seqlens.defined()) p.cu_seqlens = cu_seqlens.const_data_ptr<int64_t>();
  }
};

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
  kernels::Rows r = rows(x);
  if (x.dim() == 5 && x.size(2) == 1) r.step = r.token;
  return r;
}

kernels::cuda::Segments segments_of(const kernels::DeltaProductInputs& p) {
  return kernels::cuda::choose_segments(p, kernels::cuda::chip_processors());
}

// What the chunk kernels keep from forward for backward, in one piece of bfloat16: the states, then
// T, then P, unless backward makes it again, the vectors and the maps of segments; where operands
// are split, what rounding left of the states, the errors, T and P too.
struct Kept {
  Tensor all;
  uint16_t* states = nullptr;
  kernels::cuda::ChunkWork work;
  kernels::cuda::Segments segments;

  static int64_t size(const kernels::DeltaProductInputs& p, bool with_states, bool split) {
    const int64_t heads = kernels::cuda::chunk_count(p) * p.H, parts = split ? 2 : 1;
    const int64_t rows = with_P(p, with_states, split) ? kernels::cuda::chunk_query_rows(p.N) : 0;
    return heads * ((with_states ? parts * kernels::cuda::state_size(p) : 0) +
                    (split ? 3 : 1) * 64 * 64 + parts * rows * 64 + 2 * 5 * 64) +
           (with_states && split ? errors_size(p) : 0) + 2 * maps_size(p);
  }
  static int64_t errors_size(const kernels::DeltaProductInputs& p) {
    return p.B * p.H * p.T * p.N * p.V;
  }
  static int64_t maps_size(const kernels::DeltaProductInputs& p) {
    const int64_t count = segments_of(p).count;
    return count > 1 ? p.S * p.H * count * kernels::cuda::segment_map_size(p) : 0;
  }
  static bool with_P(const kernels::DeltaProductInputs& p, bool with_states, bool split) {
    return p.q.data && !(with_states && kernels::cuda::reverse_makes_P(p, split));
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
    const bool P = with_P(p, with_states, split);
    if (P) work.P = next(work.rows * 64);
    if (P && split) work.P_lo = next(work.rows * 64);
    work.vectors = reinterpret_cast<float*>(next(2 * 5 * 64));
    segments.maps = reinterpret_cast<float*>(at);
  }
  // Room for P where it is not kept: for forward alone.
  Tensor passing_P(const kernels::DeltaProductInputs& p) {
    if (!p.q.data || work.P) return none(all);
    const Tensor room =
        at::empty({kernels::cuda::chunk_count(p) * p.H, work.rows, 64}, all.options());
    work.P = static_cast<uint16_t*>(room.data_ptr());
    return room;
  }
  // Room for the states between segments.
  Tensor between(const kernels::DeltaProductInputs& p) {
    const int64_t count = segments.count > 1 ? segments.count : 0;
    const Tensor room =
        at::empty({p.S, p.H, count, p.K, p.V}, all.options().dtype(torch::kFloat32));
    segments.between = static_cast<float*>(room.data_ptr());
    return room;
  }
};

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
int64_t kept_size(const kernels::DeltaProductInputs& p, Method method, int64_t slots) {
  switch (method) {
    case Method::kExact: return slots * p.H * p.K * p.V;
    case Method::kSmall: return kernels::cuda::small_slots(p) * p.H * p.K * p.V;
    case Method::kSmallChunks: return small_kept_size(p);
    case Method::kOneChunk: return Kept::errors_size(p);
    case Method::kAccurate: return Kept::size(p, true, true);
    case Method::kFast: return Kept::size(p, true, false);
  }
  return 0;
}

ForwardResult forward(const MaybeTensor& q, const Tensor& k, const Tensor& v, const Tensor& beta,
                      const MaybeTensor& log_gate, const MaybeTensor& state, double scale,
                      const MaybeTensor& cu_seqlens, c10::string_view precision, bool save) {
  const OnDevice on(k);
  Inputs in(q, k, beta, log_gate, state, cu_seqlens);
  kernels::DeltaProductForward p;
  in.fill(p, v.size(4), scale);
  const Method method = kernels::cuda::choose(p, precision);
  const bool exact = method == Method::kExact, chunks = in_chunks(method);
  const int chunk = exact ? chunk_of(p) : 64;
  const int64_t slots =
      exact ? kernels::cuda::exact_slots(p, chunk) : kernels::cuda::chunk_count(p);
  const auto wide = k.options().dtype(wide_type(k)),
             error_type = keeps_bfloat16(method) ? k.options() : wide;
  const Tensor v_rows = for_method(v, method);
  in.k = for_method(in.k, method), p.k = chunk_rows(in.k);
  if (q) in.q = for_method(in.q, method), p.q = rows(in.q);
  p.v = chunk_rows(v_rows);
  ForwardResult out = {
      q ? at::empty({p.B, p.T, p.H, p.V}, k.options()) : none(k),
      at::empty({p.S, p.H, p.K, p.V}, wide),
      save ? at::empty({p.B, p.H, p.T, p.N, p.V}, error_type) : at::empty({0}, error_type),
      save ? at::empty({kept_size(p, method, slots)}, error_type) : at::empty({0}, wide)};
  auto& [o, final_state, error, states] = out;
  if (q) p.o = rows(o);
  p.final_state = final_state.data_ptr();
  if (save) p.error = error.data_ptr(), p.states = states.data_ptr();
  if (exact) {
    kernels::cuda::exact_forward(p, chunk, on.stream());
  } else if (method == Method::kSmallChunks) {
    using kernels::cuda::SmallKept;
    kernels::cuda::small_chunks_forward(p, save ? small_kept(p, error, states) : SmallKept(),
                                        on.stream());
  } else if (method == Method::kOneChunk) {
    kernels::cuda::one_chunk_forward(p, save ? static_cast<uint16_t*>(states.data_ptr()) : nullptr,
                                     on.stream());
  } else if (!chunks) {
    kernels::cuda::small_forward(p, on.stream());
  } else {
    const bool split = method == Method::kAccurate;
    Kept kept(p, save ? states : at::empty({Kept::size(p, false, split)}, k.options()), save,
              split);
    p.states = kept.states;
    const Tensor between = kept.between(p), P = kept.passing_P(p);
    kernels::cuda::chunk_prepare(p, kept.work, on.stream());
    kernels::cuda::chunk_forward(p, kept.work, kept.segments, on.stream());
  }
  return out;
}

BackwardResult backward(const MaybeTensor& d_o, const MaybeTensor& d_final_state,
                        const MaybeTensor& q, const Tensor& k, const Tensor& beta,
                        const MaybeTensor& log_gate, const MaybeTensor& state, const Tensor& error,
                        const Tensor& states, double scale, const MaybeTensor& cu_seqlens,
                        c10::string_view precision) {
  const OnDevice on(k);
  const bool has_q = q.has_value() && d_o.has_value();
  Inputs in(has_q ? q : std::nullopt, k, beta, log_gate, state, cu_seqlens);
  kernels::DeltaProductBackward p;
  in.fill(p, error.size(4), scale);
  const Method method = kernels::cuda::choose(p, precision);  // as forward did
  in.k = for_method(in.k, method), p.k = chunk_rows(in.k);
  if (has_q) in.q = for_method(in.q, method), p.q = rows(in.q);
  BackwardResult out = {has_q ? at::empty({p.B, p.T, p.H, p.K}, k.options()) : none(k),
                        at::empty({p.B, p.T, p.N, p.H, p.K}, k.options()),
                        at::empty({p.B, p.T, p.N, p.H, p.V}, k.options()),
                        at::empty({p.B, p.T, p.N, p.H}, in.beta.options()),
                        log_gate ? at::empty({p.B, p.T, p.H}, in.log_gate.options()) : none(k),
                        state ? at::empty({p.S, p.H, p.K, p.V}, in.state.options()) : none(k)};
  auto& [dq, dk, dv, dbeta, dlog_gate, dstate] = out;
  Tensor d_o_rows, d_final;
  if (has_q) {
    d_o_rows = for_method(d_o->to(k.scalar_type()), method);
    p.d_o = rows(d_o_rows), p.dq = rows(dq);
  }
  if (d_final_state) {
    d_final = d_final_state->to(wide_type(k)).contiguous();
    p.d_final_state = d_final.const_data_ptr();
  }
  p.error = error.const_data_ptr(), p.states = states.const_data_ptr();
  p.dk = chunk_rows(dk), p.dv = chunk_rows(dv);
  p.dbeta = dbeta.data_ptr();
  if (log_gate) p.dlog_gate = dlog_gate.data_ptr();
  if (state) p.dstate = dstate.data_ptr();
  if (method == Method::kSmall) {
    const bool needs_room = p.log_gate && p.type == kernels::Type::kBFloat16;
    const Tensor room =
        at::empty({needs_room ? p.B * p.H * p.T * p.N * (p.V + p.K) : 0}, error.options());
    kernels::cuda::small_backward(p, room.data_ptr<float>(), on.stream());
  } else if (method == Method::kSmallChunks) {
    kernels::cuda::small_chunks_backward(p, small_kept(p, error, states), on.stream());
  } else if (method == Method::kOneChunk) {
    kernels::cuda::one_chunk_backward(p, static_cast<const uint16_t*>(states.const_data_ptr()),
                                      on.stream());
  } else if (method == Method::kExact) {
    Tensor y = at::empty_like(error), dstates = at::empty_like(states);
    kernels::cuda::exact_backward(p, chunk_of(p), y.data_ptr(), dstates.data_ptr(), on.stream());
  } else {
    const bool had_q = q.has_value();
    if (had_q && !has_q) p.q.data = in.k.data_ptr();  // P was kept, though o has no gradient
    const bool split = method == Method::kAccurate;
    Kept kept(p, states, true, split);
    if (!has_q) p.q.data = nullptr;
    const Tensor between = kept.between(p);
    const auto room = [&](int64_t size) { return at::empty({size}, k.options()); };
    const auto data = [](const Tensor& x) { return static_cast<uint16_t*>(x.data_ptr()); };
    auto dstates = kernels::cuda::lend_rows(p, split);
    const Tensor chunks = room(kernels::cuda::chunks_size(p, dstates)),
                 ends = room(kernels::cuda::ends_size(p, dstates)),
                 dstates_lo =
                     room(split ? kernels::cuda::chunk_count(p) * p.H * kernels::cuda::state_size(p)
                                : 0),
                 dv_lo = room(split ? Kept::errors_size(p) : 0);
    dstates.chunks = data(chunks), dstates.ends = data(ends);
    kept.work.dstates_lo = data(dstates_lo), kept.work.dv_lo = data(dv_lo);
    p.states = kept.states;
    kernels::cuda::chunk_reverse(p, kept.work, kept.segments, dstates, on.stream());
    kernels::cuda::chunk_gradients(p, kept.work, dstates, on.stream());
  }
  dbeta = dbeta.to(beta.scalar_type());
  if (log_gate) dlog_gate = dlog_gate.to(log_gate->scalar_type());
  return out;
}

}  // namespace

TORCH_LIBRARY_IMPL(lrnn, CUDA, m) {
  m.impl("delta_product_forward", forward);
  m.impl("delta_product_backward", backward);
}

}  // namespace lrnn::ops::cuda
