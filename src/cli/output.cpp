#include "cli/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "base/atomic_file.h"
#include "base/error.h"
#include "compile/margin.h"

namespace lrnn::cli {

void print_json(const Json& json) {
  // Text that is not UTF-8 (a file name may be anything) must not make the result unreadable.
  std::cout << json.dump(-1, ' ', false, Json::error_handler_t::replace) << "\n";
}

void say(const std::string& text) { std::cerr << text << "\n"; }

bool on_terminal(int stream) { return isatty(stream); }

int terminal_width() {
  winsize size{};
  return ioctl(2, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void write_file(const std::string& path, const std::string& text) {
  std::error_code ignored;  // the write below fails too, and says so
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  write_atomically(path, text);
}

std::string decimals(double value, int count) {
  return std::isfinite(value) ? fmt::format("{:.{}f}", value, count) : "–";
}

std::string thousands(int64_t value) {
  std::string out = std::to_string(value);
  for (int64_t at = int64_t(out.size()) - 3; at > (value < 0); at -= 3) out.insert(size_t(at), ",");
  return out;
}

std::string bytes(double count) {
  for (const char* unit : {"B", "kB", "MB", "GB", "TB"}) {
    if (count < 999.5)
      return fmt::format("{:.{}f} {}", count, count < 9.95 && *unit != 'B' ? 1 : 0, unit);
    count /= 1000;
  }
  return fmt::format("{:.0f} PB", count);
}

std::string duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "–";
  const auto s = std::llround(seconds);
  if (seconds < 10) return fmt::format("{:.1f} s", seconds);
  if (s < 60) return fmt::format("{} s", s);
  if (s < 3600) return fmt::format("{} min {} s", s / 60, s % 60);
  return fmt::format("{} h {} min", s / 3600, s % 3600 / 60);
}

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

std::string margin_text(const compile::Margin& margin) {
  if (margin.weight == 0)
    return fmt::format("margin: none could be shown, because of {}", margin.limit);
  // Rounded down: it is a promise.
  const double digit = std::pow(10, std::floor(std::log10(margin.weight)) - 1);
  return fmt::format(
      "margin: every weight may move by up to {:.2g}, and it stays right up to length {}",
      std::floor(margin.weight / digit) * digit, margin.length);
}

}  // namespace lrnn::cli
