#pragma once
#include "ops/draw_token/draw_token.h"

// How the next token is drawn is an op: on a GPU it is part of a recording.
namespace lrnn::model {

using ops::draw_token;
using ops::Drawing;

}  // namespace lrnn::model
