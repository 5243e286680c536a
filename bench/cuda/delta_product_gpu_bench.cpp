#include "bench/cuda/problem.h"
#include "kernels/cuda/chip.h"

// The delta product on the GPU, one JSON line per shape and precision: errors against the float32
// recurrence first, then forward alone and with backward as recorded graphs, which leave the host
// out (`called_ms`: with it), and the most memory alive in forward and backward.
namespace lrnn::bench {
namespace {

Json errors_of(const std::vector<Tensor>& got, const std::vector<Tensor>& want) {
  const char* names[] = {"o", "S", "dq", "dk", "dv", "dbeta", "dlog_gate"};
  Json errors;
  for (size_t i = 0; i < got.size(); ++i) {
    const double e = relative_error(got[i], want[i]);
    errors[names[i]] = std::isfinite(e) ? Json(e) : "not finite";
  }
  return errors;
}

// What heads that share keys are spared: the same numbers with every key head repeated, as kernels
// want it that know no shared ones. Both forward and, with backward, the sums over heads included.
Json repeated_ms(const ops::DeltaProduct& in, const Tensor& d_o) {
  const auto repeated = [&] {
    ops::DeltaProduct one = in;
    const int64_t group = in.v.size(3) / in.k.size(3);
    one.q = in.q.repeat_interleave(group, 2), one.k = in.k.repeat_interleave(group, 3);
    return one;
  };
  const auto forward = [&] { ops::delta_product(repeated()); };
  const auto both = [&] {
    const auto grads = with_gradients(repeated(), d_o, {});
    for (const size_t i : {2, 3})  // dq and dk
      grads[i].unflatten(-2, {in.k.size(3), -1}).sum(-2);
  };
  const double forward_ms = graph_time_of(forward);
  const torch::AutoGradMode on(true);
  return {forward_ms, graph_time_of(both, 15)};
}

void run(Case c, const Ceilings& ceilings, int chip = 0) {
  auto in = make(c);
  const Tensor d_o = torch::randn({c.B, c.T, c.H, c.V}, in.v.options());
  double given = double(d_o.nbytes());
  for (Tensor* x : leaves(in)) given += double(x->nbytes());
  Json line = line_of(c);
  line["precision"] = c.accuracy;
  if (chip) line["chip"] = chip;
  {
    auto exact = in;
    exact.accuracy = "exact";
    line["error"] = errors_of(with_gradients(in, d_o, {}), with_gradients(exact, d_o, {}));
  }
  torch::NoGradGuard no_grad;
  const auto forward = [&] { ops::delta_product(in); };
  const auto both = [&] {
    torch::AutoGradMode on(true);
    with_gradients(in, d_o, {});
  };
  line["forward"] = ceilings.rates(graph_time_of(forward), forward_cost(c));
  line["both"] = ceilings.rates(graph_time_of(both, 15), both_cost(c));
  line["called_ms"] = {time_of(forward), time_of(both, 15)};
  line["peak_mib"] = peak_mib(both, given);
  if (c.G() < c.H) line["repeated_ms"] = repeated_ms(in, d_o);
  print(line);
}

// The kernels that chips of other generations get, on the one that is here. What such a chip takes
// for them is another matter; what it would take without chunks is the row "exact".
void as_on_other_chips(const Ceilings& ceilings) {
  for (const int chip : {90, 100, 80, 86}) {
    lrnn_choose_kernels_as_on(chip == 90 ? 0 : chip);
    for (const bool gate : {false, true})
      for (const char* accuracy : {"fast", "accurate"})
        for (Case c : {Case{.B = 8, .T = 4096, .H = 16, .K = 128, .V = 128},
                       Case{.B = 64, .T = 512, .H = 8, .K = 64, .V = 64}}) {
          c.state = false, c.wide_beta = true, c.dtype = torch::kBFloat16;
          c.gate = gate, c.accuracy = accuracy;
          run(c, ceilings, chip), forget();
          if (chip != 90 || gate || std::string(accuracy) != "fast") continue;
          c.accuracy = "exact";
          run(c, ceilings, chip), forget();
        }
  }
  lrnn_choose_kernels_as_on(0);
}

// One token of every sequence, state in and out: a step of decoding.
void decode(Case c, const Ceilings& ceilings) {
  const torch::NoGradGuard no_grad;
  c.T = 1, c.accuracy = "exact", c.wide_beta = true;  // as a model gives it: nothing to convert
  const auto in = make(c);
  auto wide = in;
  for (Tensor* x : leaves(wide)) *x = x->to(torch::kFloat64);
  const auto want = ops::delta_product_definition(wide), got = ops::delta_product(in);
  Json line = line_of(c);
  line["pass"] = "decode", line["precision"] = c.accuracy;
  line["error"] = errors_of({got.o, got.state}, {want.o, want.state});
  Cost cost = forward_cost(c);
  cost.bytes += 2 * double(in.state.nbytes());
  cost.flops = double(c.B) * ops::flops_per_token(c);
  line["forward"] = ceilings.rates(graph_time_of([&] { ops::delta_product(in); }), cost);
  print(line);
}

}  // namespace
}  // namespace lrnn::bench

// With the argument `shared`: heads that share keys, alone; with `chips`: as on other chips.
int main(int argc, char** argv) {
  using namespace lrnn::bench;
  if (!has_gpu()) return 0;
  const bool shared = argc > 1 && std::string(argv[1]) == "shared";
  const auto ceilings = Ceilings::measure();
  print(ceilings.json());
  if (argc > 1 && std::string(argv[1]) == "chips") return as_on_other_chips(ceilings), 0;
  for (const Case& c : lrnn::ops::delta_product_cases().timed_on_gpu)
    if (!shared || c.G() < c.H) run(c, ceilings), forget();
  if (shared) return 0;
  decode({.B = 64, .H = 16, .K = 128, .V = 128, .dtype = torch::kBFloat16}, ceilings);
  decode({.B = 256, .H = 4, .K = 32, .V = 32, .dtype = torch::kFloat32}, ceilings);
  return 0;
}
