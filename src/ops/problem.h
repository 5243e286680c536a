#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ops/declare.h"

// An op beside its definition on certain inputs: what tests, `lrnn doctor` and benchmarks are made
// of. Each op's case.h has the inputs.
namespace lrnn::ops {

using Tensors = std::map<std::string, Tensor>;  // an absent name is an undefined tensor
using TensorFunction = std::function<Tensors(const Tensors&)>;

struct Problem {
  Tensors in;
  TensorFunction kernel, definition;
  std::string output;  // the result that a next layer reads; others are states
};

// How far from the definition in double on the same (rounded) inputs an op may be: the root mean
// square of the difference over that of the result, for the worst result or gradient.
struct Tolerance {
  double float64 = 1e-11, float32 = 1e-5, bfloat16 = 1e-2;
  double of(torch::Dtype dtype) const {
    return dtype == torch::kFloat64 ? float64 : dtype == torch::kFloat32 ? float32 : bfloat16;
  }
};

template <class T> Tensors named(const T& of) {
  Tensors out;
  each_tensor(of, [&](const Tensor& x, const Field& field) {
    if (x.defined()) out[field.name] = x;
  });
  return out;
}

// The struct with other tensors in it; settings stay.
template <class In> In with(In in, const Tensors& named) {
  each_tensor(in, [&](Tensor& x, const Field& field) {
    const auto found = named.find(field.name);
    x = found == named.end() ? Tensor() : found->second;
  });
  return in;
}

template <class In> using OpFunction = typename In::Result (*)(const In&);

template <class In>
Problem problem_of(const In& in, OpFunction<In> kernel, OpFunction<In> definition) {
  const auto function = [in](OpFunction<In> f) {
    // A result may have an input's name.
    return [in, f](const Tensors& x) {
      Tensors out;
      for (auto& [name, y] : named(f(with(in, x)))) out["out " + name] = y;
      return out;
    };
  };
  std::string output;
  const typename In::Result none;
  each_tensor(none, [&](const Tensor&, const Field& field) {
    if (output.empty()) output = std::string("out ") + field.name;
  });
  return {named(in), function(kernel), function(definition), output};
}

// Results, and the gradients of a fixed random weighting of them, on the device of `in`.
inline Tensors everything(const Tensors& in, const TensorFunction& function) {
  Tensors leaves;
  for (const auto& [name, x] : in)
    leaves[name] = x.is_floating_point()
                       ? x.detach().clone(torch::MemoryFormat::Contiguous).requires_grad_()
                       : x;
  Tensors out;
  torch::manual_seed(7);
  Tensor loss = torch::zeros({}, torch::kFloat64);
  for (const auto& [name, y] : function(leaves)) {
    out[name] = y.detach();
    loss = loss +
           (y.to(torch::kCPU, torch::kFloat64) * torch::randn(y.sizes(), torch::kFloat64)).sum();
  }
  loss.backward();
  for (const auto& [name, x] : leaves)
    if (x.is_floating_point())
      out["d" + name] = x.grad().defined() ? x.grad() : torch::zeros_like(x);
  return out;
}

inline Tensors moved(Tensors in, torch::Device device) {
  for (auto& [name, x] : in) x = x.to(device);
  return in;
}
inline Tensors in_double(Tensors in) {
  for (auto& [name, x] : in)
    if (x.is_floating_point()) x = x.to(torch::kFloat64);
  return in;
}

// ------------------------------------------------------------------------------- random numbers

inline torch::Dtype wide(torch::Dtype dtype) {
  return dtype == torch::kFloat64 ? torch::kFloat64 : torch::kFloat32;
}

// Random inputs of an op: drawn in double where they are wanted, then rounded.
struct Draw {
  torch::Dtype dtype;
  torch::Device device;
  Draw(torch::Dtype of, torch::Device on = torch::kCPU, uint64_t seed = 1) : dtype(of), device(on) {
    torch::manual_seed(seed);
  }

  Tensor normal(at::IntArrayRef sizes) const { return torch::randn(sizes, options()); }
  Tensor uniform(at::IntArrayRef sizes) const { return torch::rand(sizes, options()); }
  Tensor unit(at::IntArrayRef sizes) const {
    const Tensor x = normal(sizes);
    return x / x.norm(2, -1, true);
  }
  // As inputs are, and as gates and states are, which no op takes in bfloat16.
  Tensor io(const Tensor& x) const { return x.to(dtype); }
  Tensor real(const Tensor& x) const { return x.to(wide(dtype)); }

 private:
  torch::TensorOptions options() const {
    return torch::TensorOptions(torch::kFloat64).device(device);
  }
};

// cu_seqlens of sequences of these lengths; undefined where there are none.
inline Tensor bounds(const std::vector<int64_t>& lengths) {
  if (lengths.empty()) return {};
  std::vector<int64_t> ends = {0};
  for (const int64_t n : lengths) ends.push_back(ends.back() + n);
  return torch::tensor(ends, torch::kInt64);
}
inline int64_t sequences(int64_t B, const std::vector<int64_t>& lengths) {
  return lengths.empty() ? B : int64_t(lengths.size());
}

// ------------------------------------------------------------------------------- cases

// Of one op, smallest first. Everything that asks an op something takes its inputs from here.
template <class Case> struct Cases {
  std::vector<Case> typical;  // what `lrnn doctor` asks
  std::vector<Case> kernels;  // every GPU kernel, as small as its tiles allow and not filling them
  std::vector<Case> timed;    // on a CPU
  std::vector<Case> timed_on_gpu;
};

// "8,2048,16,64,64 bf16"
inline std::string shape_text(std::initializer_list<int64_t> sizes, torch::Dtype dtype) {
  std::string out;
  for (const int64_t size : sizes) out += (out.empty() ? "" : ",") + std::to_string(size);
  return out + (dtype == torch::kBFloat16 ? " bf16" : dtype == torch::kFloat32 ? " fp32" : "");
}

}  // namespace lrnn::ops
