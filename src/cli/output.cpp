#include "cli/output.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <iostream>

#include "base/atomic_file.h"

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

}  // namespace lrnn::cli
