#include "kernels/cuda/diagonal/diagonal.h"
#include "kernels/cuda/rwkv7/chunk.h"
#include "ops/cuda/stream.h"
#include "ops/diagonal/diagonal.h"
#include "ops/torch.h"

namespace lrnn::ops::cuda {
namespace {

enum class DiagonalMethod : uint8_t { kWalk, kChunks, kRwkv7Chunks };

// Which kernel: by sizes alone, so that backward finds what forward kept.
DiagonalMethod choose_diagonal(const kernels::DiagonalInputs& p) {
  if (!p.q.data) return DiagonalMethod::kWalk;
  if (kernels::cuda::rwkv7_chunk_fits(p)) return DiagonalMethod::kRwkv7Chunks;
  return kernels::cuda::diagonal_chunk_fits(p) ? DiagonalMethod::kChunks : DiagonalMethod::kWalk;
}

// What forward keeps for backward: states in the form of each kernel.
Tensor memory_for_states(const kernels::DiagonalInputs& p, const torch::TensorOptions& wide) {
  const DiagonalMethod method = choose_diagonal(p);
  if (method == DiagonalMethod::kRwkv7Chunks)
    return at::empty({kernels::cuda::rwkv7_chunk_states(p) / 4}, wide);
  if (method == DiagonalMethod::kChunks)
    return at::empty({kernels::cuda::diagonal_chunk_states(p)}, wide);
  return at::empty({kernels::cuda::diagonal_kept(p), p.H, p.K, p.V}, wide);
}

Tensor rwkv7_workspace(const kernels::DiagonalInputs& p, bool backward, const Tensor& k) {
  return at::empty({kernels::cuda::rwkv7_chunk_work(p, backward)},
                   k.options().dtype(torch::kUInt8));
}

}  // namespace

std::vector<Tensor> DiagonalCuda::keep(const Diagonal& in) {
  const OnDevice on(in.k);
  kernels::DiagonalInputs p;
  fill(p, in);
  return {memory_for_states(p, options_of(in.k, Kind::kWide))};
}

void DiagonalCuda::forward(const Diagonal& in, const DiagonalResult& out,
                           const std::vector<Tensor>& kept) {
  const OnDevice on(in.k);
  check(in.k.size(3) <= kernels::cuda::kMostDiagonalKeys, "[", in.op,
        "] the GPU kernels have room for ", kernels::cuda::kMostDiagonalKeys, " keys, got ",
        in.k.size(3));
  kernels::DiagonalForward p;
  fill(p, in);
  if (out.o.defined()) p.o = kernel_rows(out.o);
  p.final_state = out.state.data_ptr();
  if (!kept.empty() && kept[0].numel() > 0) p.states = kept[0].data_ptr();
  switch (choose_diagonal(p)) {
    case DiagonalMethod::kRwkv7Chunks:
      kernels::cuda::rwkv7_chunk_forward(p, rwkv7_workspace(p, false, in.k).data_ptr(),
                                         on.stream());
      break;
    case DiagonalMethod::kChunks: {
      Tensor states;  // if nobody keeps them
      if (!p.states) {
        states = memory_for_states(p, options_of(in.k, Kind::kWide));
        p.states = states.data_ptr();
      }
      kernels::cuda::diagonal_chunk_forward(p, on.stream());
      break;
    }
    case DiagonalMethod::kWalk: kernels::cuda::diagonal_forward(p, on.stream()); break;
  }
}

void DiagonalCuda::backward(const Diagonal& in, const DiagonalResult& d,
                            const std::vector<Tensor>& kept, const Diagonal& grads) {
  const OnDevice on(in.k);
  const auto wide = options_of(in.k, Kind::kWide);
  kernels::DiagonalBackward p;
  fill(p, in);
  const DiagonalMethod method = choose_diagonal(p);  // as forward did
  if (!grads.q.defined() && method == DiagonalMethod::kWalk) p.q = {};
  fill_gradients(p, d, grads);
  p.states = kept[0].const_data_ptr();
  if (method == DiagonalMethod::kRwkv7Chunks) {
    const Tensor workspace = rwkv7_workspace(p, true, in.k), dstates = memory_for_states(p, wide);
    kernels::cuda::rwkv7_chunk_backward(p, workspace.data_ptr(), dstates.data_ptr(), on.stream());
    return;
  }
  if (method == DiagonalMethod::kChunks) {
    const Tensor dstates = memory_for_states(p, wide);
    kernels::cuda::diagonal_chunk_backward(p, dstates.data_ptr(), on.stream());
    return;
  }
  const Tensor sums = at::empty(
      {kernels::cuda::diagonal_groups(p), in.kk.defined() ? 5 : 3, p.B, p.T, p.H, p.K}, wide);
  kernels::cuda::diagonal_backward(p, sums.data_ptr(), on.stream());
}

TORCH_LIBRARY_FRAGMENT(lrnn, m) {
  back_end<DiagonalBackEnd<GatedLinearAttention, DiagonalCuda>>(m, c10::DispatchKey::CUDA);
  back_end<DiagonalBackEnd<Rwkv7, DiagonalCuda>>(m, c10::DispatchKey::CUDA);
}

}  // namespace lrnn::ops::cuda
