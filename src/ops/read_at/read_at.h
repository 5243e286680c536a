#pragma once
#include <torch/types.h>

#include <utility>

// Results at some rows only: int64 [n] indices into the flattened [B*T], rising.
namespace lrnn::ops {

// Whether the rows are the last of every sequence: of B sequences of length T, or of those that
// cu_seqlens bounds. False where only a GPU knows: to ask it would stop its stream.
bool are_ends(const torch::Tensor& rows, const torch::Tensor& cu_seqlens, int64_t B, int64_t T);

// x [B,T,..] there: [1,n,..]; and y [1,n,..] among zeros: [B,T,..].
torch::Tensor at_rows(const torch::Tensor& x, const torch::Tensor& rows);
torch::Tensor spread(const torch::Tensor& y, const torch::Tensor& rows, int64_t B, int64_t T);

// scale * S^T q: q [n,H,K] and S [n,H,K,V], of one dtype, give [n,H,V].
torch::Tensor read_state(const torch::Tensor& q, const torch::Tensor& S, double scale);
torch::Tensor read_state_definition(const torch::Tensor& q, const torch::Tensor& S, double scale);

// A recurrence with o_t = scale S_t^T q_t, whose struct has the rows `read_at`: o there, [1,n,H,V],
// from queries of all rows or of those alone, [1,n,H,K] or of fewer heads, if heads share them. At
// the ends of sequences the state alone runs, and is read once.
template <class In, class Result>
Result read_recurrence(In in, torch::Tensor In::*query, double scale, Result (*op)(const In&)) {
  const torch::Tensor rows = std::exchange(in.read_at, {}), q = in.*query;
  if (!rows.defined() || !q.defined()) return op(in);
  const int64_t B = in.k.size(0), T = in.k.size(1);
  const bool everywhere = q.size(0) == B && q.size(1) == T;
  if (!everywhere && are_ends(rows, in.cu_seqlens, B, T)) {
    (in.*query).reset();
    Result out = op(in);
    torch::Tensor reads = q.flatten(0, 1);
    if (const int64_t group = out.state.size(1) / reads.size(1); group > 1)
      reads = reads.repeat_interleave(group, 1);
    out.o = read_state(reads.to(out.state.scalar_type()), out.state, scale)
                .to(in.v.scalar_type())
                .unsqueeze(0);
    return out;
  }
  if (!everywhere) in.*query = spread(q, rows, B, T);
  Result out = op(in);
  out.o = at_rows(out.o, rows);
  return out;
}

}  // namespace lrnn::ops
