#include "experiments/child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "experiments/reason.h"

namespace lrnn::experiments {

namespace {

constexpr int kMessagesAt = 3;  // as in kMessages

int open_output(const std::string& path, int how) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | how, 0666);
  check(file >= 0, "cannot write ", path, ": ", std::strerror(errno));
  return file;
}

// The environment of the child: ours, with some variables replaced.
std::vector<std::string> merged_environment(const Process::Command& command) {
  std::vector<std::string> out;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    bool replaced = false;
    for (const auto& [name, value] : command.environment)
      replaced = replaced || text.rfind(name + "=", 0) == 0;
    if (!replaced) out.push_back(text);
  }
  for (const auto& [name, value] : command.environment) out.push_back(name + "=" + value);
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (auto& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

std::string this_program() {
  std::error_code failed;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", failed);
  check(!failed, "cannot find the program that is running: ", failed.message());
  return path.string();
}

Process::Process(const Command& command) {
  const int log = open_output(command.log, O_APPEND);
  const int out = command.out.empty() ? log : open_output(command.out, O_TRUNC);
  int pipe[2] = {-1, -1};
  const bool piped = ::pipe2(pipe, O_CLOEXEC) == 0;
  // Everything is made ready before the fork: after it only a few calls are safe.
  auto words = command.words, environment = merged_environment(command);
  const auto argv = pointers(words), envp = pointers(environment);
  const pid_t parent = ::getpid();
  if (piped) pid_ = ::fork();
  if (pid_ == 0) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(130);  // it ended before we could ask to be told
    ::dup2(out, 1), ::dup2(log, 2);
    if (pipe[1] == kMessagesAt)
      ::fcntl(kMessagesAt, F_SETFD, 0);  // dup2 would leave it to be closed
    else
      ::dup2(pipe[1], kMessagesAt);
    ::execve(argv[0], argv.data(), envp.data());
    ::_exit(127);
  }
  const int error = errno;
  if (out != log) ::close(out);
  ::close(log);
  if (piped) ::close(pipe[1]);
  if (pid_ <= 0 && piped) ::close(pipe[0]);
  check(pid_ > 0, "cannot start a process: ", std::strerror(error));
  messages_ = pipe[0];
  ::fcntl(messages_, F_SETFL, O_NONBLOCK);
}

Process::~Process() {
  if (pid_ > 0) {
    ::kill(pid_, SIGTERM);
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
  }
  ::close(messages_);
}

std::vector<Message> Process::said() {
  char some[4096];
  ssize_t size = 0;
  while ((size = ::read(messages_, some, sizeof some)) > 0 || (size < 0 && errno == EINTR))
    if (size > 0) unread_.append(some, size_t(size));
  std::vector<Message> out;
  for (size_t end; (end = unread_.find('\n')) != std::string::npos; unread_.erase(0, end + 1))
    if (auto message = from_line(unread_.substr(0, end))) out.push_back(std::move(*message));
  return out;
}

void Process::ended(int status) {
  code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  pid_ = -1;
}

bool Process::running() {
  if (pid_ <= 0) return false;
  int status = 0;
  const pid_t found = ::waitpid(pid_, &status, WNOHANG);
  if (found == pid_) ended(status);
  return pid_ > 0;
}

void Process::stop() {
  if (pid_ > 0) ::kill(pid_, SIGINT);
}

TrainingThread::TrainingThread(const RunConfig& config, const TrainOptions& options)
    : thread_([this, config, options] { work(config, options); }) {}

TrainingThread::~TrainingThread() {
  stop();
  thread_.join();
}

void TrainingThread::work(const RunConfig& config, TrainOptions options) {
  options.resume = true;
  options.progress = [this](const Progress& p) { say({.progress = p}); };
  options.warn = [this](const std::string& text) {
    say({.kind = Message::kWarning, .text = text});
  };
  options.interrupted = [this] { return bool(stop_); };
  try {
    code_ = train(config, options).interrupted ? 130 : 0;
  } catch (const std::exception& e) {
    const auto why = reason_of(e);
    say({.kind = Message::kError, .text = why.text, .hint = why.hint});
    code_ = 2;
  }
  ended_ = true;
}

void TrainingThread::say(Message message) {
  const std::lock_guard lock(mutex_);
  said_.push_back(std::move(message));
}

std::vector<Message> TrainingThread::said() {
  const std::lock_guard lock(mutex_);
  return std::exchange(said_, {});
}

}  // namespace lrnn::experiments
