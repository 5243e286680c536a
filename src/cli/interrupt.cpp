#include "cli/interrupt.h"

#include <csignal>

namespace lrnn::cli {
namespace {

volatile std::sig_atomic_t raised = 0;

extern "C" void raise_flag(int) { raised = 1; }

}  // namespace

void watch_interrupts() {
  struct sigaction action {};
  action.sa_handler = raise_flag;
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() { return raised != 0; }

}  // namespace lrnn::cli
