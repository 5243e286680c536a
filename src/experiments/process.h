#pragma once
#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "experiments/child.h"

namespace lrnn::experiments {

// A program that runs beside this one and is told to stop (SIGTERM) when this one ends, however it
// ends. Ctrl-C at the terminal does not reach it: stop() passes it on.
class Process final : public Child {
 public:
  struct Command {
    std::vector<std::string> words;
    std::string out, log;  // files for stdout (empty: the log) and, appended, stderr
    std::vector<std::pair<std::string, std::string>> environment;
  };
  // Where the program writes its messages, line by line.
  static constexpr const char* kMessages = "/dev/fd/3";

  explicit Process(const Command& command);
  ~Process() override;

  bool running() override;
  void stop() override;  // SIGINT
  std::vector<Message> said() override;
  int code() const override { return code_; }

 private:
  void ended(int status);
  pid_t pid_ = -1;
  int code_ = -1, messages_ = -1;
  std::string unread_;  // the beginning of a line
};

// The path of the program that is running now.
std::string this_program();

}  // namespace lrnn::experiments
