#include "experiments/folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <torch/version.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "base/atomic_file.h"

namespace lrnn::experiments {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

std::string cpu_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.rfind("model name", 0) == 0 && line.find(": ") != std::string::npos)
      return line.substr(line.find(": ") + 2);
  return "unknown";
}

std::string now() {
  const auto time = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm utc{};
  ::gmtime_r(&time, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

// Keys that change neither weights nor metrics may differ when a run goes on.
bool harmless(const std::string& difference) {
  for (const char* key : {"train.keep", "train.checkpoint_every"})
    if (difference.rfind(std::string(key) + ":", 0) == 0) return true;
  return false;
}

}  // namespace

std::vector<std::string> changes(const std::string& config_file, const RunConfig& now) {
  return differences(resolve(read_config(config_file, {})), resolve(now));
}

std::string print_config(const RunConfig& config) {
  YAML::Emitter out;
  out << resolve(config);
  return std::string(out.c_str()) + "\n";
}

Folder::Folder(const std::string& path, const RunConfig& config, bool resume)
    : path_(path), checkpoints_(path + "/checkpoints") {
  check(!path.empty(), "a run needs a folder to write to");
  std::error_code failed;
  fs::create_directories(path, failed);
  if (failed || !fs::is_directory(path))
    throw Error(cat("cannot make the folder ", path, ": ",
                    failed ? failed.message() : "it is something else"));
  existed_ = fs::exists(file("config.yaml"));
  if (existed_ && !resume)
    throw Error(cat(path, " already holds a run"),
                "continue it with --resume, or choose another folder with --out");
  lock();
  try {
    if (existed_) check_config(config);
    write_atomically(file("config.yaml"), print_config(config));
  } catch (...) {
    ::close(lock_);
    throw;
  }
}

Folder::~Folder() { ::close(lock_); }

// The kernel drops the lock when the process ends, however it ends.
void Folder::lock() {
  lock_ = ::open(file("lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  check(lock_ >= 0, "cannot write ", file("lock"), ": ", std::strerror(errno));
  if (::flock(lock_, LOCK_EX | LOCK_NB) == 0) return;
  const int error = errno;
  ::close(lock_);
  if (error != EWOULDBLOCK)
    throw Error(cat("cannot lock ", file("lock"), ": ", std::strerror(error)));
  throw Error(cat("another process is training in ", path_),
              "wait for it, stop it, or choose another folder with --out");
}

void Folder::check_config(const RunConfig& config) const {
  std::string changed;
  for (const auto& difference : changes(file("config.yaml"), config))
    if (!harmless(difference)) changed += (changed.empty() ? "" : ", ") + difference;
  if (!changed.empty())
    throw Error(cat(file("config.yaml"), " is not the config given now: ", changed),
                "use the same config, or start a new run with another --out");
}

Folder::Machine Folder::settle(const Machine& machine) const {
  const std::string path = file("info.json");
  if (existed_ && fs::exists(path)) {
    try {
      const auto info = Json::parse(read_file(path));
      return {.threads = info.at("threads").get<int64_t>(), .device = info.value("device", "cpu")};
    } catch (const Json::exception&) {
      throw Error(path + " is damaged: it does not say how many threads the run uses",
                  "write {\"threads\": n} into it with the n the run was started with");
    }
  }
  Json info{{"lrnn", LRNN_VERSION},
            {"libtorch", TORCH_VERSION},
            {"cpu", cpu_name()},
            {"threads", machine.threads},
            {"device", machine.device}};
  if (!machine.gpu.empty()) info["gpu"] = machine.gpu;
  info["started"] = now();
  write_atomically(path, info.dump(2) + "\n");
  return machine;
}

}  // namespace lrnn::experiments
