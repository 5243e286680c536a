#include "ops/delta_product.h"

namespace lrnn::ops {

DeltaProductResult delta_product(const DeltaProduct& in) { return delta_product_definition(in); }

}  // namespace lrnn::ops
