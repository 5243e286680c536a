#include <poll.h>

#include <CLI/Error.hpp>
#include <csignal>
#include <iostream>
#include <string>

#include "base/error.h"
#include "cli/command.h"
#include "cli/output.h"
#include "experiments/reason.h"
#include "training/memory.h"

// The program: its arguments in, an exit code out, and every error as a sentence and a hint.
namespace lrnn::cli {
namespace {

int explain(const std::string& what, const std::string& hint) {
  std::cout.flush();
  std::cerr << "lrnn: " << what << "\n";
  if (!hint.empty()) std::cerr << "      " << hint << "\n";
  tell({.kind = experiments::Message::kError, .text = what, .hint = hint});
  return kError;
}

// A reader that had enough (`lrnn tasks | head`) is no error; a full disk is.
int finish(int code) {
  std::cout.flush();
  if (std::cout) return code;
  pollfd out{1, POLLOUT, 0};
  if (poll(&out, 1, 0) == 1 && (out.revents & POLLERR)) return code;
  return explain("the output could not be written", "is the disk full?");
}

}  // namespace

int program(const std::vector<std::string>& arguments) try {
  std::signal(SIGPIPE, SIG_IGN);  // training goes on when nobody reads its progress any more
  training::reuse_memory();
  return finish(run(arguments));
} catch (const CLI::Error& e) {
  return explain(experiments::reason_of(e).text, "add --help to see what the command takes");
} catch (const std::exception& e) {
  const auto reason = experiments::reason_of(e);
  return explain(reason.text, reason.hint);
}

}  // namespace lrnn::cli
