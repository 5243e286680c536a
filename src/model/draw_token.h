#pragma once
#include "ops/draw_token/draw_token.h"

namespace lrnn::model {

using ops::draw_token;
using ops::Drawing;

}  // namespace lrnn::model
