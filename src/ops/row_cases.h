#pragma once
#include "ops/gated_mlp/gated_mlp.h"
#include "ops/linears/linears.h"
#include "ops/norm/norm.h"
#include "ops/problem.h"
#include "ops/swiglu/swiglu.h"
#include "ops/take/take.h"

// Inputs of the ops that know no time: norms, products, SwiGLU, rows of tables.
namespace lrnn::ops {

struct RowsCase {
  int64_t B = 1, T = 67, D = 40;
  int64_t n = 0;         // of a matrix or a table beside them, where the op has one
  int64_t products = 1;  // with such matrices
  torch::Dtype dtype = torch::kFloat64;
  bool wide = false;  // a norm's weight in float32 beside bfloat16, as a model gives it
};

inline Tensor make_rows(const RowsCase& c, const Draw& draw) {
  return draw.io(draw.normal({c.B, c.T, c.D}));
}

inline std::string shape_of(const RowsCase& c) {
  return c.n ? shape_text({c.B * c.T, c.D, c.n}, c.dtype) : shape_text({c.B * c.T, c.D}, c.dtype);
}
inline double flops_per_token(const RowsCase& c) {
  return double(c.D * (c.n ? 2 * c.n * c.products : 5));
}

inline Cases<RowsCase> rows_cases() {
  Cases<RowsCase> out;
  // Rows that fill no vector, and such as models have.
  out.typical = {{}, {.T = 9, .D = 128}};
  for (const auto dtype : {torch::kFloat64, torch::kFloat32, torch::kBFloat16})
    for (const int64_t D : {5, 136}) out.kernels.push_back({.T = 70, .D = D, .dtype = dtype});
  // Rows of a warp's 2 to 8 packs a thread, more of them than one round takes.
  for (const int64_t D : {512, 768, 1536, 2048})
    out.kernels.push_back(
        {.T = D == 512 ? 4300 : 11, .D = D, .dtype = torch::kBFloat16, .wide = true});
  out.kernels.push_back({.T = 11, .D = 1024, .dtype = torch::kFloat32});
  out.timed = {{.T = 5248, .D = 128, .dtype = torch::kFloat32},  // a batch of parity, of the demo
               {.T = 650, .D = 32, .dtype = torch::kFloat32}};
  out.timed_on_gpu = {{.T = 65536, .D = 1024, .dtype = torch::kBFloat16, .wide = true},
                      {.T = 16384, .D = 128, .dtype = torch::kFloat32}};
  return out;
}

// With a matrix of n rows or columns, or a table of n rows.
inline Cases<RowsCase> rows_cases(const std::vector<int64_t>& n, const std::vector<int64_t>& D,
                                  const std::vector<RowsCase>& timed_on_gpu) {
  Cases<RowsCase> out;
  out.typical = {{.D = D[0], .n = n[0]}};
  for (const auto dtype : {torch::kFloat64, torch::kFloat32, torch::kBFloat16})
    for (const int64_t columns : D)
      for (const int64_t rows : n)
        out.kernels.push_back({.T = 90, .D = columns, .n = rows, .dtype = dtype});
  out.timed_on_gpu = timed_on_gpu;
  return out;
}

// ------------------------------------------------------------------------------------------ norms

inline RmsNorm make_rms_norm(const RowsCase& c, const Draw& draw) {
  const Tensor x = make_rows(c, draw);
  const Tensor weight = draw.normal({c.D});
  return {.x = x, .weight = c.wide ? draw.real(weight) : draw.io(weight), .eps = 1e-6};
}
inline L2Norm make_l2_norm(const RowsCase& c, const Draw& draw) {
  return {.x = make_rows(c, draw), .eps = 1e-6};
}
inline Problem add_norm_problem(const RowsCase& c, const Draw& draw) {
  const Tensor x = make_rows(c, draw), y = make_rows(c, draw);
  const auto results = [](const std::pair<Tensor, Tensor>& out) -> Tensors {
    return {{"out s", out.first}, {"out h", out.second}};
  };
  return {{{"x", x}, {"y", y}, {"weight", draw.io(draw.normal({c.D}))}},
          [=](const Tensors& in) {
            return results(add_norm(in.at("x"), in.at("y"), in.at("weight"), 1e-6, false));
          },
          [=](const Tensors& in) {
            return results(add_norm_definition(in.at("x"), in.at("y"), in.at("weight"), 1e-6));
          },
          "out h"};
}

// --------------------------------------------------------------------------------- SwiGLU and MLP

inline Swiglu make_swiglu(const RowsCase& c, const Draw& draw) {
  const Tensor gate = make_rows(c, draw);
  return {.gate = gate, .up = make_rows(c, draw)};
}
inline SwigluHalves make_swiglu_halves(const RowsCase& c, const Draw& draw) {
  return {.gate_up = draw.io(draw.normal({c.B, c.T, 2 * c.D}))};
}

// n hidden units.
inline Problem gated_mlp_problem(const RowsCase& c, const Draw& draw) {
  const Tensor x = make_rows(c, draw), gate = draw.io(0.1 * draw.normal({c.n, c.D})),
               up = draw.io(0.1 * draw.normal({c.n, c.D})),
               down = draw.io(0.1 * draw.normal({c.D, c.n}));
  using Function = Tensor(const Tensor&, const Tensor&, const Tensor&, const Tensor&);
  const auto by = [](Function* f) {
    return [f](const Tensors& in) -> Tensors {
      return {{"out y", f(in.at("x"), in.at("gate"), in.at("up"), in.at("down"))}};
    };
  };
  return {{{"x", x}, {"gate", gate}, {"up", up}, {"down", down}},
          by(gated_mlp),
          by(gated_mlp_definition),
          "out y"};
}
inline Cases<RowsCase> gated_mlp_cases() {
  const auto bf16 = torch::kBFloat16;
  auto out =
      rows_cases({56}, {40}, {{.T = 16384, .D = 128, .n = 512, .products = 3, .dtype = bf16}});
  // As many rows as it takes to be one kernel, and a few more.
  for (const int64_t D : {64, 128})
    out.kernels.push_back({.T = 4100, .D = D, .n = 128, .dtype = bf16});
  out.timed = {{.T = 5248, .D = 128, .n = 512, .products = 3, .dtype = torch::kFloat32}};
  return out;
}

// -------------------------------------------------------------------- products and rows of tables

// A product with a matrix of few rows, which a GPU has a kernel for.
inline Problem few_linear_problem(const RowsCase& c, const Draw& draw) {
  const Tensor x = make_rows(c, draw), weight = draw.io(draw.normal({c.n, c.D}));
  return {{{"x", x}, {"weight", weight}},
          [](const Tensors& in) -> Tensors {
            return {{"out y", ops::linear(in.at("x"), in.at("weight"))}};
          },
          [](const Tensors& in) -> Tensors {
            return {{"out y", at::linear(in.at("x"), in.at("weight"))}};
          },
          "out y"};
}
inline Cases<RowsCase> few_linear_cases() {
  return rows_cases({2, 3, 7}, {40}, {{.T = 16384, .D = 128, .n = 4, .dtype = torch::kBFloat16}});
}

// D channels in blocks of n.
inline Problem block_linear_problem(const RowsCase& c, const Draw& draw) {
  const Tensor x = make_rows(c, draw), weight = draw.io(draw.normal({c.D / c.n, c.n, c.n}));
  const auto by = [](auto f) {
    return [f](const Tensors& in) -> Tensors {
      return {{"out y", f(in.at("x"), in.at("weight"))}};
    };
  };
  return {{{"x", x}, {"weight", weight}}, by(block_linear), by(block_linear_definition), "out y"};
}
inline Cases<RowsCase> block_linear_cases() {
  return rows_cases({4}, {12},
                    {{.T = 10240, .D = 256, .n = 4, .dtype = torch::kFloat32},
                     {.T = 10240, .D = 256, .n = 4, .dtype = torch::kBFloat16}});
}

// Rows of a table of n, some of them -1.
inline Problem take_problem(const RowsCase& c, const Draw& draw) {
  const Tensor table = draw.io(draw.normal({c.n, c.D})),
               index = (draw.uniform({c.B, c.T}) * double(c.n + 1)).floor().to(torch::kInt64) - 1;
  const auto by = [](auto f) {
    return [f](const Tensors& in) -> Tensors {
      return {{"out rows", f({in.at("table")}, in.at("index"))[0]}};
    };
  };
  return {{{"table", table}, {"index", index}}, by(take), by(take_definition), "out rows"};
}
inline Cases<RowsCase> take_cases() {
  const auto bf16 = torch::kBFloat16, fp32 = torch::kFloat32;
  // Few rows are summed in place, many are sorted first.
  return rows_cases({5, 70}, {5, 136},
                    {{.T = 65536, .D = 1024, .n = 8, .dtype = bf16},
                     {.T = 65536, .D = 1024, .n = 4096, .dtype = bf16},
                     {.T = 16384, .D = 128, .n = 8, .dtype = fp32},
                     {.T = 16384, .D = 128, .n = 4096, .dtype = fp32}});
}

}  // namespace lrnn::ops
