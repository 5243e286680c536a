#include "bench/cuda/problem.h"

// Does a token cost the same in a long sequence as in a short one, from 4k to 1M tokens? Once with
// a million tokens in all, so that short sequences come many at a time, and once with one sequence,
// however long. `of_shortest` is the time of a token beside that in the shortest sequences.
namespace lrnn::bench {
namespace {

constexpr int64_t kShortest = 4096, kLongest = 1 << 20;

struct PerToken {
  double forward = 0, both = 0;  // milliseconds
  double mib = 0;                // at the peak of forward and backward
};

double device_mib() {
  size_t free = 0, total = 0;
  cudaMemGetInfo(&free, &total);
  return double(total) / (1 << 20);
}

PerToken measure(const Case& p, const std::string& precision, const Ceilings& ceilings,
                 const char* constant, PerToken shortest) {
  auto in = make(p);
  const Tensor d_o = torch::randn({p.B, p.T, p.H, p.V}, in.v.options());
  Json line = line_of(p);
  line["precision"] = precision, line["constant"] = constant;
  {
    torch::NoGradGuard no_grad;
    in.accuracy = "exact";
    const auto want = ops::delta_product(in);
    in.accuracy = precision;
    const auto got = ops::delta_product(in);
    line["error"] = {{"o", relative_error(got.o, want.o)},
                     {"S", relative_error(got.state, want.state)}};
  }
  forget();
  const double forward = graph_time_of(
      [&] {
        torch::NoGradGuard no_grad;
        ops::delta_product(in);
      },
      15);
  forget();
  const double tokens = double(p.B * p.T);
  PerToken here = {forward / tokens};
  if (shortest.forward == 0) shortest.forward = here.forward;
  line["forward"] = ceilings.rates(forward, forward_cost(p));
  line["ns_per_token"] = Json::array({here.forward * 1e6});
  line["of_shortest"] = Json::array({here.forward / shortest.forward});
  // A recording has memory of its own beside that of the calls before it.
  if (2 * shortest.mib * tokens < 0.9 * device_mib()) {
    const auto run = [&] { with_gradients(in, d_o, {}); };
    const double both = graph_time_of(run, 10);
    here.both = both / tokens;
    if (shortest.both == 0) {
      double given = double(d_o.nbytes());
      for (const Tensor* x : leaves(in)) given += double(x->nbytes());
      shortest.both = here.both, shortest.mib = peak_mib(run, given) / tokens;
    }
    line["both"] = ceilings.rates(both, both_cost(p));
    line["ns_per_token"].push_back(here.both * 1e6);
    line["of_shortest"].push_back(here.both / shortest.both);
  }
  print(line);
  return shortest;
}

void run(const std::string& precision, const Ceilings& ceilings) {
  PerToken shortest;
  for (int64_t T = kShortest; T <= kLongest; T *= 4) {
    shortest = measure({.B = kLongest / T,
                        .T = T,
                        .H = 4,
                        .K = 128,
                        .V = 128,
                        .state = false,
                        .dtype = torch::kBFloat16},
                       precision, ceilings, "B T", shortest);
    forget();
  }
  shortest = {};
  for (int64_t T = kShortest; T <= kLongest; T *= 4) {
    shortest = measure(
        {.B = 1, .T = T, .H = 16, .K = 128, .V = 128, .state = false, .dtype = torch::kBFloat16},
        precision, ceilings, "B H", shortest);
    forget();
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
