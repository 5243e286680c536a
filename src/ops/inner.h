#pragma once
#include <ATen/Parallel.h>
#include <torch/types.h>

#include <atomic>
#include <optional>
#include <vector>

#include "base/error.h"
#include "kernels/dispatch.h"
#include "kernels/types.h"

// What every op with back ends needs: optional tensors, its inner ops, and tensors and threads as
// the kernels see them.
namespace lrnn::ops {

using MaybeTensor = std::optional<torch::Tensor>;

inline MaybeTensor maybe(const torch::Tensor& x) {
  return x.defined() ? MaybeTensor(x) : std::nullopt;
}
inline torch::Tensor or_undefined(const MaybeTensor& x) { return x.value_or(torch::Tensor()); }

// What states and gates are computed in, beside inputs like x.
inline torch::Dtype wide_type(const torch::Tensor& x) {
  return x.scalar_type() == torch::kFloat64 ? torch::kFloat64 : torch::kFloat32;
}

// While it lives torch's autocast rounds nothing: an op chooses its own precision, and a state that
// is rounded at every step forgets what it counted.
inline c10::impl::ExcludeDispatchKeyGuard without_autocast() {
  return c10::impl::ExcludeDispatchKeyGuard(c10::autocast_dispatch_keyset);
}

// Nobody registered a kernel for this device: a GPU's are loaded when they are first asked for.
// What cannot be had is an error that names the device, and not every back end that torch knows.
void require_kernels(const char* op, const torch::Device& device);
template <class Call> auto with_kernels(const char* op, const torch::Device& device, Call&& call) {
  try {
    return call();
  } catch (const c10::NotImplementedError&) {
    require_kernels(op, device);
  }
  return call();
}
template <class Op, class... Args>
auto call_inner(const char* name, const torch::Device& device, const Op& op, const Args&... args) {
  return with_kernels(name, device, [&] { return op.call(args...); });
}

inline kernels::Type kernel_type(const torch::Tensor& x) {
  return x.scalar_type() == torch::kFloat64   ? kernels::Type::kFloat64
         : x.scalar_type() == torch::kFloat32 ? kernels::Type::kFloat32
                                              : kernels::Type::kBFloat16;
}

// [B,T,N,H,D], [B,T,H,D] or [B,T,D].
inline kernels::Rows kernel_rows(const torch::Tensor& x) {
  if (x.dim() == 5) return {x.data_ptr(), x.stride(0), x.stride(1), x.stride(2), x.stride(3)};
  return {x.data_ptr(), x.stride(0), x.stride(1), 0, x.dim() == 4 ? x.stride(2) : 0};
}

inline void* data_or_null(const torch::Tensor& x) { return x.defined() ? x.data_ptr() : nullptr; }

// LibTorch's threads for our kernels. Each thread takes the next piece when it is free, so pieces
// of unequal size balance.
inline kernels::Parallel parallel() {
  const int64_t all = at::in_parallel_region() ? 1 : at::get_num_threads();
  if (all < 2) return kernels::serial;
  return {[all](int64_t n, const kernels::Parallel::Body& body) {
            const int64_t threads = std::min(n, all);
            if (threads < 2) return kernels::serial(n, body);
            std::atomic<int64_t> next{0};
            at::parallel_for(0, threads, 1, [&](int64_t, int64_t) {
              for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < n;) body(i);
            });
          },
          all};
}

// Rows may lie anywhere, but each must be contiguous.
inline torch::Tensor with_rows(const torch::Tensor& x) {
  return x.dim() == 0 || x.stride(-1) == 1 ? x : x.contiguous();
}

// Stands for a result that nobody asked for.
inline torch::Tensor none(const torch::Tensor& like) { return at::empty({0}, like.options()); }

// The bounds of S sequences packed into T tokens.
inline void check_bounds(const char* op, const int64_t* at, int64_t S, int64_t T) {
  check(at[0] == 0 && at[S] == T, "[", op, "] cu_seqlens must run from 0 to T = ", T, ", got ",
        at[0], " to ", at[S]);
  for (int64_t s = 0; s < S; ++s)
    check(at[s] <= at[s + 1], "[", op, "] cu_seqlens must not decrease, got ", at[s], " before ",
          at[s + 1]);
}
// The same of `cu_seqlens`, which is contiguous, on the CPU, and stays.
inline const int64_t* checked_bounds(const char* op, const torch::Tensor& cu_seqlens, int64_t T) {
  const int64_t* const at = cu_seqlens.const_data_ptr<int64_t>();
  check_bounds(op, at, cu_seqlens.size(0) - 1, T);
  return at;
}

// cu_seqlens as int64, contiguous and on the device of x, or undefined. Bounds that lie on the CPU,
// or come there, are checked; those of a GPU are not read back, which would stop its stream: the
// kernels there stay inside the tensors whatever the bounds say.
inline torch::Tensor checked_offsets(const char* op, const MaybeTensor& cu_seqlens,
                                     const torch::Tensor& x) {
  if (!cu_seqlens || !cu_seqlens->defined()) return {};
  const torch::Tensor given = cu_seqlens->to(at::kLong).contiguous(), cu = given.to(x.device());
  if (given.device().is_cpu() || cu.device().is_cpu())
    checked_bounds(op, given.device().is_cpu() ? given : cu, x.size(1));
  return cu;
}

// The definition, on bounds that no kernel is going to check: those of sequences packed as x is.
// Inside torch.func they are in a wrapper, which gives its values but not its memory.
template <class Inputs, class Result>
Result by_definition(const char* op, Result (*definition)(const Inputs&), const Inputs& in,
                     const torch::Tensor& x) {
  std::vector<int64_t> at;
  if (in.cu_seqlens.defined())
    for (int64_t s = 0; s < in.cu_seqlens.size(0); ++s)
      at.push_back(in.cu_seqlens[s].template item<int64_t>());
  if (!at.empty()) check_bounds(op, at.data(), int64_t(at.size()) - 1, x.size(1));
  return definition(in);
}

}  // namespace lrnn::ops
