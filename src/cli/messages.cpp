#include "cli/messages.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "cli/output.h"

namespace lrnn::cli {
namespace {

int watcher = -1;

}  // namespace

CLI::Option* add_progress(CLI::App& app) {
  return app
      .add_option_function<std::string>(
          "--progress", open_messages,
          "also write progress, warnings and errors there, as lines of JSON")
      ->type_name("FILE");
}

// Not waiting: a watcher that does not read misses lines, and the training goes on.
void open_messages(const std::string& file) {
  if (watcher >= 0) ::close(watcher);
  watcher = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);
  check(watcher >= 0, "cannot write ", file, ": ", std::strerror(errno));
}

void tell(const experiments::Message& message) {
  if (watcher < 0) return;
  const auto line = experiments::to_line(message) + "\n";
  [[maybe_unused]] const auto written = ::write(watcher, line.data(), line.size());
}

void warn(const std::string& sentence) {
  say("warning: " + sentence);
  tell({.kind = experiments::Message::kWarning, .text = sentence});
}

}  // namespace lrnn::cli
