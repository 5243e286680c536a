#pragma once
#include "ops/apply.h"

// A back end is a struct with three functions:
//
//   using In = ...;                                    // the op's inputs
//   static std::vector<Tensor> keep(const In& in);     // memory for what backward will read
//   static void forward(const In& in, Result& out, std::vector<Tensor>& kept);  // maybe empty
//   static void backward(const Backward<In>& b, In& grads);
//
// `keep` may be left out. It sees inputs as kernels read them (see `prepared`; with a member
// kAsGiven as they came) and fills tensors that are there already, or puts others in their place.
// Gradients have memory from a function gradients(in, d) where a back end has one. Results and
// gradients that nobody asked for are undefined in C++ and empty for torch.
namespace lrnn::ops {

inline Tensor in_type(const Tensor& x, torch::Dtype type) {
  return x.scalar_type() == type ? x : x.to(type);
}

// Inputs as kernels read them: rows contiguous, what may be wide is, bounds of sequences checked
// and beside the rest. Again, for backward: what it does not read is a size without numbers.
template <class T> T prepared(const T& of, const Tensor& main, bool again = false) {
  T out = of;
  each_tensor(out, [&](Tensor& x, const Field& field) {
    if (!x.defined() || (again && field.unused)) return;
    if (field.kind == Kind::kIndex) {
      if constexpr (requires { T::kName; }) x = checked_offsets(T::kName, x, main);
    } else if (field.kind == Kind::kIo || field.kind == Kind::kCast) {
      x = in_type(x, main.scalar_type());
      x = field.memory ? laid_out_as(field, x) : with_rows(x);
    } else {
      x = in_type(x, wide_type(main)).contiguous();
    }
  });
  return out;
}

inline torch::TensorOptions options_of(const Tensor& main, Kind kind) {
  return kind == Kind::kIo ? main.options() : main.options().dtype(wide_type(main));
}

template <class In> typename In::Result empty_results(const In& in) {
  typename In::Result out;
  const Tensor* main = nullptr;
  const char* shape = "";
  each_tensor(in, [&](const Tensor& x, const Field& field) {
    if (field.need == Need::kMain) main = &x, shape = field.shape;
  });
  std::optional<SizesByLetter> letters;  // most results are like the main input
  each_tensor(out, [&](Tensor& x, const Field& field) {
    if (!matters(field, in)) return;
    const auto options = options_of(*main, field.kind);
    if (std::string_view(field.shape) == shape) {
      x = empty_as(field, main->sym_sizes(), options);
      return;
    }
    if (!letters) {
      letters.emplace(In::kName, slots(in));
      if constexpr (requires { In::more_letters(*letters); }) In::more_letters(*letters);
    }
    x = empty_as(field, letters->sizes(field.shape), options);
  });
  return out;
}

// Memory for the gradients of all inputs that are there and matter to a result with a gradient.
template <class In> In empty_gradients(const In& in, const typename In::Result& d) {
  In out;
  const auto to = tensors(out);
  size_t i = 0;
  each_tensor(in, [&](const Tensor& x, const Field& field) {
    Tensor& grad = *to[i++];
    if (x.defined() && field.kind != Kind::kIndex && matters(field, d))
      grad = empty_as(field, x.sym_sizes(), x.options());
  });
  return out;
}

// ------------------------------------------------------------- a back end's functions for others

// On the Meta device there are shapes, and nothing to compute.
template <class B, bool kMeta> struct BackEnd {
  using In = typename B::In;
  using Result = typename In::Result;
  static constexpr bool kPrepares = !kMeta && !requires { B::kAsGiven; };

  static Result forward(const In& given, bool save, std::vector<Tensor>& kept) {
    const auto no_autocast = without_autocast();
    if constexpr (kPrepares) return run(prepared(given, main_of(given)), save, kept);
    return run(given, save, kept);
  }
  static In backward(const Backward<In>& given) {
    const auto no_autocast = without_autocast();
    In grads;
    if constexpr (kPrepares) {
      const Tensor& main = main_of(given.in);
      const In in = prepared(given.in, main, true);
      const Result d = prepared(given.d, main);
      grads = run({in, given.out, d, given.kept});
    } else {
      grads = run(given);
    }
    // Parameters that were read wide have gradients like themselves.
    const Slots like = slots(given.in);
    size_t i = 0;
    each_tensor(grads, [&](Tensor& x, const Field&) {
      const Tensor& of = *like[i++].x;
      if (x.defined()) x = in_type(x, of.scalar_type());
    });
    return grads;
  }

 private:
  static Result run(const In& in, bool save, std::vector<Tensor>& kept) {
    Result out = empty_results(in);
    if constexpr (requires { B::keep(in); })
      if (save) kept = B::keep(in);
    if constexpr (!kMeta) B::forward(in, out, kept);
    return out;
  }
  static In run(const Backward<In>& b) {
    if constexpr (kMeta) {
      return empty_gradients(b.in, b.d);
    } else {
      In grads;
      if constexpr (requires { B::gradients(b.in, b.d); })
        grads = B::gradients(b.in, b.d);
      else
        grads = empty_gradients(b.in, b.d);
      B::backward(b, grads);
      return grads;
    }
  }
};

template <class B, bool kMeta> void boxed_forward(const c10::OperatorHandle& op, Stack* stack) {
  const bool save = stack->back().toBool();
  const c10::IValue* at = first_argument(op, *stack);
  const auto in = pull<typename B::In>(at);
  std::vector<Tensor> kept;
  const auto out = BackEnd<B, kMeta>::forward(in, save, kept);
  torch::jit::drop(*stack, arguments_of(op));
  push_results(*stack, out, main_of(in));
  stack->emplace_back(std::move(kept));
}

template <class B, bool kMeta> void boxed_backward(const c10::OperatorHandle& op, Stack* stack) {
  using In = typename B::In;
  using Result = typename In::Result;
  const c10::IValue* at = first_argument(op, *stack);
  const Result d = pull<Result>(at);
  Result out;
  each_tensor(out, [&](Tensor& x, const Field& field) {
    if (field.saved) x = from_value(*at++);
  });
  const In in = pull<In>(at);
  const std::vector<Tensor> kept = at->toTensorVector();
  const In grads = BackEnd<B, kMeta>::backward({in, out, d, kept});
  std::vector<Tensor> list;
  each_tensor(grads, [&](const Tensor& x, const Field& field) {
    if (field.kind != Kind::kIndex) list.push_back(x.defined() ? x : none(main_of(in)));
  });
  torch::jit::drop(*stack, arguments_of(op));
  stack->emplace_back(std::move(list));
}

// back_end<B>(m, device) in a TORCH_LIBRARY_FRAGMENT(lrnn, m).
template <class B, bool kMeta = false> void back_end(torch::Library& m, c10::DispatchKey device) {
  const std::string name = B::In::kName;
  m.impl((name + "_forward").c_str(),
         torch::dispatch(device,
                         torch::CppFunction::makeFromBoxedFunction<&boxed_forward<B, kMeta>>()));
  m.impl((name + "_backward").c_str(),
         torch::dispatch(device,
                         torch::CppFunction::makeFromBoxedFunction<&boxed_backward<B, kMeta>>()));
  if constexpr (!kMeta)
    functions(B::In::kName, c10::dispatchKeyToDeviceType(device)) = {
        reinterpret_cast<Functions::Any>(&BackEnd<B, kMeta>::forward),
        reinterpret_cast<Functions::Any>(&BackEnd<B, kMeta>::backward)};
}
// On the CPU, and with it what shapes there are on the Meta device.
template <class B> void cpu_back_end(torch::Library& m) {
  back_end<B>(m, c10::DispatchKey::CPU);
  back_end<B, true>(m, c10::DispatchKey::Meta);
}

}  // namespace lrnn::ops
