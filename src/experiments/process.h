#pragma once
#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace lrnn::experiments {

// A program that runs beside this one and is told to stop (SIGTERM) when this one ends, however it
// ends. Ctrl-C at the terminal does not reach it: stop() passes it on.
class Process {
 public:
  struct Command {
    std::vector<std::string> words;
    std::string out, log;  // files for stdout (empty: the log) and, appended, stderr
    std::vector<std::pair<std::string, std::string>> environment;
  };
  explicit Process(const Command& command);
  ~Process();  // stops it and waits
  Process(Process&& other) noexcept : pid_(std::exchange(other.pid_, -1)), code_(other.code_) {}
  Process& operator=(Process&&) = delete;

  bool running();                     // looks, does not wait
  void stop();                        // SIGINT: save, then end
  int code() const { return code_; }  // once it does not run any more; 128 + n after signal n

 private:
  void ended(int status);
  pid_t pid_ = -1;
  int code_ = -1;
};

// The path of the program that is running now.
std::string this_program();

}  // namespace lrnn::experiments
