#pragma once
#include "compile/compile.h"
#include "compile/long_run.h"

namespace lrnn::compile {

// How far the weights of a compiled model may move.
struct Margin {
  double weight = 0;   // every weight by up to so much, all at once; 0: nothing could be shown
  int64_t length = 0;  // and the model stays right on words up to this length
  std::string limit;   // what the bound breaks on beyond it: "the answers", "the gates of layer 2"
};
constexpr int64_t kMarginLength = 256;

// A bound, part by part: by how much movements of the weights change keys, step sizes, states,
// gates and logits, each at its worst and all in the same direction, rounding included. Right to
// within some percent of the largest that this way of reasoning gives.
Margin margin_of(const Compiled& compiled, int64_t length = kMarginLength);

// What the bound breaks on when every weight moves by `weight`; empty when it holds.
std::string breaks(const Compiled& compiled, double weight, int64_t length);

// The same by trying: all weights are moved by `weight` up or down, at random and then each in the
// direction that brings the right answer nearest to another one, and words up to the length are
// read. The model is as it was afterwards.
struct MarginTrial {
  int64_t directions = 0, wrong = 0;  // wrong: in which some answer was
};
struct MarginTrialOptions {
  double weight = 0;
  int64_t length = kMarginLength, random = 8;
  uint64_t seed = 1;
};
MarginTrial try_margin(model::Model& model, const Automaton& a, const Tokens& tokens,
                       const MarginTrialOptions& options);

}  // namespace lrnn::compile
