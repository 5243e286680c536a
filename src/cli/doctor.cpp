#include "cli/doctor.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <fmt/format.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <torch/version.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <thread>

#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "figures/table.h"
#include "kernels/dispatch.h"
#include "ops/every_op.h"
#include "ops/torch.h"

namespace lrnn::cli {

std::vector<OpCheck> check_ops(const std::vector<std::string>& devices) {
  std::vector<OpCheck> out;
  for (const auto& device : devices)
    for (const auto& op : ops::every_op())
      for (const auto& [name, dtype] : {std::pair("float32", torch::kFloat32),
                                        {"float64", torch::kFloat64},
                                        {"bfloat16", torch::kBFloat16}}) {
        OpCheck check{op.name, device, name, 0, 0, op.tolerance.of(dtype)};
        for (const auto& ask : op.typical) {
          const auto a = ops::agreement(ask.on(dtype), torch::Device(device));
          // A NaN stays.
          if (!(a.results <= check.results)) check.results = a.results;
          if (!(a.gradients <= check.gradients)) check.gradients = a.gradients;
        }
        out.push_back(check);
      }
  return out;
}

namespace {

// "2.11.0" of "2.11.0+cu130"
std::string base_version(const std::string& version) {
  return version.substr(0, version.find('+'));
}

// What the loaded library says of itself; the headers only know what it was built against.
std::string found_torch() {
  const std::string text = at::show_config();
  const std::string key = "TORCH_VERSION=";
  const auto at = text.find(key);
  if (at == std::string::npos) return "unknown";
  const auto begin = at + key.size();
  return text.substr(begin, text.find_first_of(", \n", begin) - begin);
}

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  struct utsname machine {};  // ARM's list has numbers and no names
  return uname(&machine) == 0 ? machine.machine : "unknown";
}

std::vector<std::string> cpu_features() {
  std::vector<std::string> out;
#if defined(__x86_64__)
// The builtin takes nothing but a literal.
#define LRNN_FEATURE(name) \
  if (__builtin_cpu_supports(name)) out.emplace_back(name)
  LRNN_FEATURE("avx2");
  LRNN_FEATURE("fma");
  if (kernels::has_f16c()) out.emplace_back("f16c");
  LRNN_FEATURE("avx512f");
  LRNN_FEATURE("avx512bw");
  LRNN_FEATURE("avx512dq");
  LRNN_FEATURE("avx512vl");
#undef LRNN_FEATURE
#elif defined(__aarch64__)
  out.emplace_back("neon");  // every such machine has it
#endif
  return out;
}

double gigabytes(uint64_t units, uint64_t size) { return double(units) * double(size) / (1 << 30); }

Json facts() {
  struct sysinfo memory {};
  sysinfo(&memory);
  const auto cuda = why_no_cuda();
  return {{"lrnn", LRNN_VERSION},
          {"libtorch_built", TORCH_VERSION},
          {"libtorch_found", found_torch()},
          {"compiler", "g++ " __VERSION__},
          {"cpu", cpu_name()},
          {"cpu_features", cpu_features()},
          {"kernels", kernels::name(kernels::best_isa())},
          {"cores", std::thread::hardware_concurrency()},
          {"threads", at::get_num_threads()},
          {"memory_gb", gigabytes(memory.totalram, memory.mem_unit)},
          {"memory_free_gb", gigabytes(memory.freeram + memory.bufferram, memory.mem_unit)},
          {"cuda", cuda.empty()},
          {"cuda_why_not", cuda.empty() ? Json(nullptr) : Json(cuda)}};
}

std::string off_by(const OpCheck& c) {
  return fmt::format(
      "{} in {} on {} is off by {:.1e}, its gradients by {:.1e} (at most {:.0e} is "
      "rounding)",
      c.op, c.dtype, c.device, c.results, c.gradients, c.limit);
}

std::vector<std::string> problems(const Json& f, const std::vector<OpCheck>& checks) {
  std::vector<std::string> out;
  const std::string built = f["libtorch_built"], found = f["libtorch_found"];
  if (base_version(built) != base_version(found))
    out.push_back(fmt::format("built against LibTorch {}, but {} is loaded", built, found));
  for (const auto& c : checks)
    if (!c.ok()) out.push_back(off_by(c));
  return out;
}

void print(const Json& f) {
  std::string features;
  for (const auto& name : f["cpu_features"]) features += " " + name.get<std::string>();
  const auto line = [](const char* what, const std::string& value) {
    std::cout << fmt::format("{:<10}{}\n", what, value);
  };
  line("lrnn", f["lrnn"]);
  line("LibTorch", fmt::format("built against {}, found {}", f["libtorch_built"].get<std::string>(),
                               f["libtorch_found"].get<std::string>()));
  line("compiler", f["compiler"]);
  line("CPU", f["cpu"].get<std::string>() + ";" + features);
  line("kernels", f["kernels"]);
  line("threads", fmt::format("{} of {} cores", f["threads"].get<int>(), f["cores"].get<int>()));
  line("memory", fmt::format("{:.1f} GB, {:.1f} GB of it free", f["memory_gb"].get<double>(),
                             f["memory_free_gb"].get<double>()));
  line("CUDA", f["cuda"] ? "yes" : "no: " + f["cuda_why_not"].get<std::string>());
}

Json to_json(const OpCheck& c) {
  return {{"op", c.op},           {"device", c.device},       {"dtype", c.dtype},
          {"results", c.results}, {"gradients", c.gradients}, {"limit", c.limit},
          {"ok", c.ok()}};
}
Json to_json(const std::vector<OpCheck>& checks) {
  Json out = Json::array();
  for (const auto& c : checks) out.push_back(to_json(c));
  return out;
}

void print(const std::string& title, const std::vector<OpCheck>& checks) {
  figures::Table table({title, "on", "dtype", "results", "gradients", "limit", ""});
  for (const auto& c : checks)
    table.row({c.op, c.device, c.dtype, fmt::format("{:.1e}", c.results),
               fmt::format("{:.1e}", c.gradients), fmt::format("{:.0e}", c.limit),
               c.ok() ? "ok" : "WRONG"});
  std::cout << "\n" << table.text() << "\n";
}

// ------------------------------------------------------------------------------- at random

RandomReport ask_at_random(const RandomChecks& how, const std::vector<std::string>& devices) {
  watch_interrupts();
  ProgressBar progress(/*quiet=*/false);
  return check_many_at_random(how, devices, [&](const RandomCheck& next) {
    progress.show(fmt::format("at random, seed {}: {} {} in {} on {}", next.seed, next.check.op,
                              next.shape, next.check.dtype, next.check.device));
  });
}

Json to_json(const RandomChecks& how, const RandomReport& report) {
  Json wrong = Json::array();
  for (const auto& found : report.wrong) {
    wrong.push_back({{"seed", found.seed}, {"shape", found.shape}});
    wrong.back().update(to_json(found.check));
  }
  Json refused = Json::array();
  for (const auto& found : report.refused)
    refused.push_back({{"seed", found.seed},
                       {"op", found.check.op},
                       {"device", found.check.device},
                       {"shape", found.shape},
                       {"why", found.refused}});
  return {{"first_seed", how.first},
          {"cases", report.cases},
          {"worst", to_json(report.worst)},
          {"refused", refused},
          {"wrong", wrong}};
}

// "12 cases at random, seeds 1 to 12"
std::string counted(const RandomChecks& how, const RandomReport& report) {
  return fmt::format("{} cases at random, seeds {} to {}", report.cases, how.first,
                     how.first + uint64_t(std::max<int64_t>(report.cases, 1)) - 1);
}

int examine(bool json, const RandomChecks& how) {
  const auto f = facts();
  std::vector<std::string> devices = {"cpu"};
  if (f["cuda"]) devices.emplace_back("cuda");
  const auto checks = check_ops(devices);
  if (!json) print(f), print("op against its definition", checks);
  const auto random = how.wanted() ? ask_at_random(how, devices) : RandomReport();
  auto wrong = problems(f, checks);
  for (const auto& found : random.wrong)
    wrong.push_back(fmt::format("{}: shape {}; again with: lrnn doctor --cases 1 --seed {}",
                                off_by(found.check), found.shape, found.seed));
  if (json) {
    Json out = f;
    out["ops"] = to_json(checks);
    if (how.wanted()) out["random"] = to_json(how, random);
    out["problems"] = wrong, out["ok"] = wrong.empty();
    print_json(out);
  } else {
    if (how.wanted()) print("worst of " + counted(how, random), random.worst);
    for (const auto& found : random.refused)
      std::cout << fmt::format("refused, seed {}: {}\n", found.seed, found.refused);
    std::cout << (wrong.empty() ? "all is well\n" : "");
  }
  for (const auto& sentence : wrong) say("lrnn: " + sentence);
  if (!wrong.empty()) say("      please send us what `lrnn doctor --json` prints");
  return !wrong.empty() ? kError : random.interrupted ? kInterrupted : kDone;
}

}  // namespace

Action doctor(CLI::App& app) {
  struct Arguments {
    bool json = false;
    RandomChecks random;
  };
  auto a = std::make_shared<Arguments>();
  app.add_flag("--json", a->json, "one JSON object");
  add_number(app, "--cases", a->random.cases, "also ask ops this many times at random sizes",
             Least::kZero);
  add_number(app, "--seconds", a->random.seconds, "the same until so much time has passed",
             Least::kZero);
  add_number(app, "--seed", a->random.first, "of the first such case; the next has the next");
  app.footer(
      "Exit code 2 when anything is off.\n\nExample:\n  lrnn doctor --json\n"
      "  lrnn doctor --seconds 600     # sizes, options and types by chance, with their seeds");
  return [a] { return examine(a->json, a->random); };
}

}  // namespace lrnn::cli
