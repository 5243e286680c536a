#include "ops/short_conv.h"

namespace lrnn::ops {

ShortConvResult short_conv(const ShortConv& in) { return short_conv_definition(in); }

}  // namespace lrnn::ops
