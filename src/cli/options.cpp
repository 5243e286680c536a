#include "cli/options.h"

#include <cmath>

#include "base/error.h"
#include "ops/gpu.h"
#include "ops/torch.h"

namespace lrnn::cli {

CLI::Validator number(Least least, std::function<bool(const std::string&)> taken) {
  // The help names them so.
  const char* name = least == Least::kAny ? "" : least == Least::kZero ? "NONNEGATIVE" : "POSITIVE";
  const auto problem = [least, taken](const std::string& text) -> std::string {
    if (least == Least::kAny && taken(text)) return {};
    double value = 0;
    if (!CLI::detail::lexical_cast(text, value)) return text + " is not a number";
    if ((least == Least::kZero && value < 0) || (least == Least::kAboveZero && value <= 0))
      return text + " is too small";
    return taken(text) && std::isfinite(value) ? "" : text + " is not a number that it takes";
  };
  return CLI::Validator(problem, name);
}

void add_figure(CLI::App& app, std::string& out, const std::string& otherwise) {
  app.add_option("-o,--out", out, "the figure (default: " + otherwise + ")")->type_name("FILE");
}

void add_config(CLI::App& app, std::string& config, std::vector<std::string>& overrides,
                const std::string& about) {
  app.add_option("CONFIG", config, about);
  app.add_option("KEYS", overrides, "key=value pairs that replace what the file says");
}

std::shared_ptr<automata::Source> add_automaton_options(CLI::App& app) {
  auto s = std::make_shared<automata::Source>();
  // A callback: the empty expression is given, too.
  app.add_option_function<std::string>(
         "--regex", [s](const std::string& regex) { s->regex = regex, s->has_regex = true; },
         "| * + ? {2,5} ( ) . [a-c] [^a] \\ escapes, ! complement, & intersection")
      ->type_name("R");
  app.add_option("--alphabet", s->alphabet, "every symbol of its words, such as ab")
      ->type_name("CHARACTERS");
  app.add_option("--automaton", s->file, "JSON or Graphviz text, see docs/automata.md")
      ->type_name("FILE");
  app.add_option("--group", s->group, "S5, A5, Z60, D4, Q8, A4_x_Z5, or generators (123),(12)")
      ->type_name("NAME");
  app.add_option("--letters", s->letters,
                 "of the group: all, swaps, generators, or elements (12),(123) or 1,5")
      ->type_name("WHICH");
  app.add_option("--example", s->example, "a named automaton, such as parity or dyck1_3")
      ->type_name("NAME");
  return s;
}

std::shared_ptr<std::string> add_device(CLI::App& app) {
  auto device = std::make_shared<std::string>("cpu");
  app.add_option("--device", *device, "cpu or cuda (default: cpu)")->type_name("NAME");
  return device;
}

std::string why_no_cuda() {
  // Before LibTorch is asked about CUDA: the plug-in brings LibTorch's own CUDA half with it.
  if (const auto why = ops::load_gpu(); !why.empty()) return why;
  return at::globalContext().hasCUDA() ? "" : "no CUDA device was found";
}

void require_device(const std::string& device) {
  if (device == "cpu") return;
  check(device == "cuda", "--device must be cpu or cuda, got '", device, "'");
  if (const auto why = why_no_cuda(); !why.empty()) throw Error(why, "use --device cpu");
  // Backward runs in a thread of LibTorch's that meets CUDA at its first kernel. Were that a matrix
  // product, LibTorch would warn of a missing context; so let it be this one.
  const auto one = torch::ones({}, torch::device(torch::kCUDA).requires_grad(true));
  (one * one).backward();
}

std::shared_ptr<void> use_device(const std::string& device) {
  require_device(device);
  return device == "cpu" ? nullptr : ops::gpu()->own_stream();
}

}  // namespace lrnn::cli
