#include "experiments/side_by_side.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <iostream>

namespace lrnn::experiments {
namespace {

constexpr int kStopped = 130, kFailed = 2;

// What a child tells its parent; small enough that a pipe passes it on in one piece.
struct Message {
  Progress progress;
  char error[1024] = {};
};
static_assert(sizeof(Message) <= 4096 && std::is_trivially_copyable_v<Message>);

void send(int pipe, const Message& message) {
  // A parent that is gone is no reason to lose the run.
  [[maybe_unused]] const auto written = write(pipe, &message, sizeof message);
}

// The child's whole life. It must not return into the parent's code, so it keeps its errors.
[[noreturn]] void work(const Job& job, int pipe, const std::function<bool()>& interrupted) {
  Message message;
  try {
    const auto result = train(job.config, {.out = job.out,
                                           .device = "cpu",
                                           .resume = false,
                                           .progress =
                                               [&](const Progress& p) {
                                                 message.progress = p;
                                                 send(pipe, message);
                                               },
                                           .interrupted = interrupted});
    _exit(result.interrupted ? kStopped : 0);
  } catch (const std::exception& e) {
    std::snprintf(message.error, sizeof message.error, "%s", e.what());
    send(pipe, message);
    _exit(kFailed);
  }
}

struct Child {
  size_t job = 0;
  pid_t pid = 0;
  int pipe = -1;
  std::string error;
};

Child start(const std::vector<Job>& jobs, size_t job, const std::function<bool()>& interrupted) {
  int ends[2];
  check(pipe2(ends, O_CLOEXEC) == 0, "cannot make a pipe: ", std::strerror(errno));
  std::cout.flush(), std::fflush(nullptr);  // or the child would print it again
  const pid_t pid = fork();
  check(pid >= 0, "cannot start a process: ", std::strerror(errno));
  if (pid == 0) {
    // Ctrl-C reaches the parent alone, which passes it on once; a second one would kill.
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    close(ends[0]);
    work(jobs[job], ends[1], interrupted);
  }
  close(ends[1]);
  return {job, pid, ends[0], {}};
}

// Reads what the child has to say; false when it has ended.
bool listen(Child& child, std::vector<Progress>& progress) {
  Message message;
  const auto size = read(child.pipe, &message, sizeof message);
  if (size < 0 && errno == EINTR) return true;
  if (size != ssize_t(sizeof message)) return false;
  progress[child.job] = message.progress;
  child.error = message.error;
  return true;
}

int wait_for(const Child& child) {
  int status = 0;
  while (waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  close(child.pipe);
  return WIFEXITED(status) ? WEXITSTATUS(status) : kFailed;
}

// Ends the children that are still at work when an error leaves the function.
struct Children : std::vector<Child> {
  ~Children() {
    for (const auto& child : *this) kill(child.pid, SIGTERM), wait_for(child);
  }
};

}  // namespace

bool train_side_by_side(const std::vector<Job>& jobs, size_t at_once,
                        const std::function<void(const std::vector<Progress>&)>& progress,
                        const std::function<bool()>& interrupted) {
  std::vector<Progress> all(jobs.size());
  for (size_t i = 0; i < jobs.size(); ++i) all[i].steps = jobs[i].config.train.steps;
  Children children;
  bool stopped = false;
  for (size_t next = 0; next < jobs.size() || !children.empty();) {
    if (!stopped && interrupted()) {
      stopped = true;
      for (const auto& child : children) kill(child.pid, SIGINT);
    }
    if (stopped) next = jobs.size();
    while (next < jobs.size() && children.size() < at_once)
      children.push_back(start(jobs, next++, interrupted));

    std::vector<pollfd> pipes;
    for (const auto& child : children) pipes.push_back({child.pipe, POLLIN, 0});
    poll(pipes.data(), pipes.size(), 200);
    for (size_t i = pipes.size(); i-- > 0;) {
      if (!pipes[i].revents || listen(children[i], all)) continue;
      const Child child = children[i];
      children.erase(children.begin() + int64_t(i));
      const int code = wait_for(child);
      stopped = stopped || code == kStopped;
      if (code != 0 && code != kStopped)
        throw Error(
            cat(jobs[child.job].name, ": ",
                child.error.empty() ? "the training process ended unexpectedly" : child.error));
    }
    progress(all);
  }
  return !stopped;
}

}  // namespace lrnn::experiments
