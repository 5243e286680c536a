#include <torch/library.h>

#include "cli/command.h"

// The command line inside a Python process: what several processes that train one model need, since
// the group they talk through is torch.distributed's (python/lrnn/together.py).
namespace lrnn::python {

TORCH_LIBRARY_FRAGMENT(lrnn, m) {
  m.def("run_program(str[] arguments) -> int", [](const std::vector<std::string>& arguments) {
    return int64_t(cli::program(arguments));
  });
}

}  // namespace lrnn::python
