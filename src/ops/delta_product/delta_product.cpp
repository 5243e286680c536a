#include "ops/delta_product/delta_product.h"

#include "ops/by_sequence.h"
#include "ops/read_at/read_at.h"
#include "ops/torch.h"

namespace lrnn::ops {

void DeltaProduct::check() const {
  for (const auto& [name, word] : {std::pair("accuracy", accuracy), {"precision", precision}})
    lrnn::check(word.empty() || word == "fast" || word == "accurate" || word == "exact",
                "[delta_product] ", name, " must be fast, accurate or exact, got '", word, "'");
  const c10::SymInt G = k.sym_size(3), H = v.sym_size(3);
  if (G != H && (G == 0 || H == 0 || H % G != 0))
    throw Error(
        cat("[delta_product] ", H, " value heads cannot share ", G, " key heads: v is ",
            show(v.sym_sizes()), " = [B,T,N,H,V] and k ", show(k.sym_sizes()), " = [B,T,N,G,K]"),
        "H must be a multiple of G");
}

DeltaProductResult delta_product(const DeltaProduct& in) {
  if (in.read_at.defined())
    return read_recurrence(in, &DeltaProduct::q, scale_of(in.scale, in.k), delta_product);
  if (in.precision.empty()) return apply_op(in, delta_product_definition);
  TORCH_WARN_ONCE("delta_product: `precision` is called `accuracy` now");
  DeltaProduct now = in;
  if (now.accuracy.empty()) now.accuracy = in.precision;
  now.precision.clear();
  return apply_op(now, delta_product_definition);
}

TORCH_LIBRARY_FRAGMENT(lrnn, m) { declare<DeltaProduct, delta_product>(m); }

}  // namespace lrnn::ops
