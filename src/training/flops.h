#pragma once
#include <optional>
#include <string>

#include "model/model.h"

// What a token of training costs, counted by us: tokens a second times this, over what the device
// can do, is the share of it that was used (MFU). What is computed again (train.recompute) is not
// counted twice.
namespace lrnn::training {

// Floating-point operations of forward and backward for a token of a sequence of that length.
//
//   products     6 a weight, the head's included, a table's lookup not
//   delta_product, delta_net   as its chunks of 64 have them, dense tiles
//   attention    6 times length times width: half of all pairs, scores and values
//   the others   18 a number of the state: decay, step and reading, and twice that in backward
double flops_per_token(const model::Model& model, int64_t length);

// The most that a large product of bfloat16 reaches on the device of that name, measured, a second;
// nothing for devices that we have not measured.
std::optional<double> product_flops(const std::string& device);

}  // namespace lrnn::training
