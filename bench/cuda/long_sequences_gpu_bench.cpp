#include "bench/cuda/problem.h"

// Does a token cost the same in a long sequence as in a short one? A million tokens in all, in
// sequences of 4k to 1M. `of_shortest` is the time beside that of the shortest sequences.
namespace lrnn::bench {
namespace {

void run(const std::string& precision, const Ceilings& ceilings) {
  constexpr int64_t kTokens = 1 << 20;
  double shortest_forward = 0, shortest_both = 0;
  for (int64_t T = 4096; T <= kTokens; T *= 4) {
    const Problem p{kTokens / T, T, 1, 4, 128, 128};
    torch::manual_seed(1);
    auto in = make(p);
    const Tensor d_o = torch::randn({p.B, p.T, p.H, p.V}, in.v.options());
    Json line = shape_of(p);
    line["precision"] = precision;
    {
      torch::NoGradGuard no_grad;
      in.precision = "exact";
      const auto want = ops::delta_product(in);
      in.precision = precision;
      const auto got = ops::delta_product(in);
      line["error"] = {{"o", relative_error(got.o, want.o)},
                       {"S", relative_error(got.state, want.state)}};
    }
    const double forward = graph_time_of(
        [&] {
          torch::NoGradGuard no_grad;
          ops::delta_product(in);
        },
        15);
    const double both = graph_time_of([&] { with_gradients(in, d_o, {}); }, 10);
    if (!shortest_both) shortest_forward = forward, shortest_both = both;
    line["forward"] = ceilings.rates(forward, forward_cost(p));
    line["both"] = ceilings.rates(both, both_cost(p));
    line["ns_per_token"] = {forward * 1e6 / kTokens, both * 1e6 / kTokens};
    line["of_shortest"] = {forward / shortest_forward, both / shortest_both};
    print(line);
    c10::cuda::CUDACachingAllocator::emptyCache();
  }
}

}  // namespace
}  // namespace lrnn::bench

int main() {
  using namespace lrnn::bench;
  if (!has_gpu()) return 0;
  const auto ceilings = Ceilings::measure();
  print(ceilings.json());
  for (const char* precision : {"fast", "accurate"}) run(precision, ceilings);
  return 0;
}
