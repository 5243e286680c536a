#include <c10/util/Exception.h>
#include <poll.h>

#include <CLI/Error.hpp>
#include <csignal>
#include <iostream>
#include <new>
#include <string>

#include "base/error.h"
#include "cli/command.h"
#include "cli/output.h"
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

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

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
} catch (const Error& e) {
  return explain(e.what(), e.hint());
} catch (const CLI::Error& e) {
  return explain(first_line(e.what()), "add --help to see what the command takes");
} catch (const c10::Error& e) {
  return explain(first_line(e.what_without_backtrace()),
                 "this came from LibTorch; `lrnn doctor` checks it");
} catch (const std::bad_alloc&) {
  return explain("there is not enough memory", "try a smaller batch, or shorter sequences");
} catch (const std::exception& e) {
  return explain(first_line(e.what()), "");
}

}  // namespace lrnn::cli
