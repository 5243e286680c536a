#pragma once
#include <map>
#include <string>
#include <vector>

#include "compile/network.h"
#include "ops/torch.h"

// How errors go through norms and matrix products: those of weights that have moved, and of
// rounding, each at its worst.
namespace lrnn::compile {

constexpr double kUlp = 0x1p-24;  // what float32 rounds by, as a share

// An error in some dimensions of the residual stream, of which the sum or the length is known.
struct Source {
  torch::Tensor columns;
  bool length;
  double size;
};

// What a product reads. Every number is at least 0.
struct Input {
  torch::Tensor most;    // how large the entries are
  torch::Tensor scaled;  // how far their size may be off
  torch::Tensor noise;   // and what may be added to each
  torch::Tensor factor;  // by which a number of the stream becomes one of the input
};

// What each row of a product may be off by.
struct Off {
  torch::Tensor scaled;  // because its input has the wrong size
  torch::Tensor shared;  // because its input is wrong otherwise: alike for rows that are alike
  torch::Tensor moved;   // because its own weights have moved
  torch::Tensor rounding;
  torch::Tensor all() const { return scaled + shared + moved + rounding; }
};

// The residual stream of a network with these weights, every one of which has moved by `delta`.
class Errors {
 public:
  using Tensors = std::map<std::string, torch::Tensor>;
  Errors(const Network& net, const Tensors& tensors, double delta);

  torch::Tensor weight(const std::string& name) const { return tensors_.at(name + ".weight"); }
  double delta() const { return delta_; }

  // Something is added to the stream that is wrong in some dimensions, and a little in all of them.
  void add(const std::vector<Source>& sources, double everywhere);
  void add(int64_t column, double error) { noise_[column] += error; }
  // What is not 0 in a column may be larger or smaller by this share of a fact.
  void resize(int64_t column, double share);

  Input normed(const std::string& norm) const;
  // `mass` is what the input's entries are in sum.
  Off product(const torch::Tensor& w, const Input& x, double mass) const;
  Off product(const std::string& name, const Input& x) const;

 private:
  static torch::Tensor once(const torch::Tensor& x, const torch::Tensor& choice);

  const Tensors& tensors_;
  double delta_;
  torch::Tensor choice_;        // of each dimension
  torch::Tensor most_, noise_;  // how large it is, and what may be added to it
  torch::Tensor resized_;       // and how far its size may be off
  std::vector<Source> sources_;
};

inline double largest(const torch::Tensor& x) { return x.max().item<double>(); }

}  // namespace lrnn::compile
