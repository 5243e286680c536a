#pragma once
#include <sys/types.h>

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "experiments/run.h"

// Who trains: a process, or a thread of this one.
namespace lrnn::experiments {

// Work that goes on beside this thread, and what it says. There are two kinds, each with a reason:
//
//   Process         what happens to one happens to no other, and LibTorch's thread pool belongs to
//                   a process: on the CPU every run is one
//   TrainingThread  for runs that share a GPU: kernels of different processes take turns on it,
//                   those of one process run side by side
class Child {
 public:
  Child() = default;
  virtual ~Child() = default;  // stops it and waits
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  virtual bool running() = 0;               // looks, does not wait
  virtual void stop() = 0;                  // save, then end
  virtual std::vector<Message> said() = 0;  // since the last call
  // Once it does not run any more: 0 done, 2 failed, 130 stopped; 128 + n after signal n.
  virtual int code() const = 0;
};

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

// A run that trains in a thread of this process.
class TrainingThread final : public Child {
 public:
  // Goes on with the run in the folder if there is one. What is shown, and when to stop, is ours.
  TrainingThread(const RunConfig& config, const TrainOptions& options);
  ~TrainingThread() override;

  bool running() override { return !ended_; }
  void stop() override { stop_ = true; }
  std::vector<Message> said() override;
  int code() const override { return code_; }

 private:
  void work(const RunConfig& config, TrainOptions options);
  void say(Message message);

  std::mutex mutex_;
  std::vector<Message> said_;
  int code_ = -1;
  std::atomic<bool> stop_ = false, ended_ = false;
  std::thread thread_;  // last: it uses all the others
};

}  // namespace lrnn::experiments
