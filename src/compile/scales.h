#pragma once
#include <cmath>

#include "compile/network.h"

// How large the numbers of a construction are as weights.
//
// AdamW moves every weight by about the learning rate, whatever its size: a fact that is stored as
// 1 is worn away, one that is stored as 2^24 is not. So everything that holds the state together is
// scaled up where it is stored and down again where it is read, by powers of two, which change no
// bit of any result. The answers alone are read with small weights: those can be learnt anew, and
// how far they may move is the margin of the model.
namespace lrnn::compile {

// With so large an epsilon x / sqrt(mean(x^2) + eps) is x / 2^63 to the last bit, and the norm's
// weight says what the projections see. A dimension that nobody reads has the weight 0.
constexpr double kNormEps = 0x1p126, kNormRoot = 0x1p63;

constexpr double kStreamUnit = 0x1p24;   // a fact, or any number of size 1, in the residual stream
constexpr double kReadUnit = 0x1p18;     // the same of what heads read, with its offset
constexpr double kStateUnit = 0x1p20;    // an entry of a state
constexpr double kMixerUnit = 0x1p-19;   // a fact as q, k, v and beta read it
constexpr double kMlpUnit = 0x1p-19;     // a fact as gates read it
constexpr double kOutputUnit = 0x1p-20;  // an entry of a state as the output projection reads it
constexpr double kUp = 0x1p-2;           // what an open gate is multiplied by before it is read
constexpr double kKey = 0x1p20;   // of a key before its norm, whose own epsilon is lost in rounding
constexpr double kFlaKey = 0.25;  // the same after SiLU, which goes down to -0.278 only

inline double stream_unit(const Feature& f) {
  return f.offset >= kReadOffset ? kReadUnit : kStreamUnit;
}

// (silu(g) - silu(g - kGateStep)) / kGateStep is 1 for g >= kGateOpen and 0 for g <= -kGateOpen.
constexpr double kGateOpen = 128, kGateStep = 64;
inline double gain_of(const Gate& g) {
  return std::exp2(std::ceil(std::log2(kGateOpen / g.margin)));
}

// The right answer's logit leads by this much: the others' probabilities are 0 in float32, and so
// is the gradient of the loss on words that the model follows.
constexpr double kLead = 128;
// All weights may move by this much before the lead is gone, in models whose margin the answers
// limit; a quarter more is left for what the rest of the network does meanwhile.
constexpr double kAnswerMargin = 1 / 32., kAnswerSlack = 1.25;
// What the answers read of a fact, and of the constant feature, which keeps tokens down that are
// never an answer.
inline double answer_unit(const Network& net) {
  return kLead / (2 * kAnswerMargin * kAnswerSlack * net.reach);
}
inline double constant_unit(const Network& net) { return answer_unit(net) * net.reach / 16; }

}  // namespace lrnn::compile
