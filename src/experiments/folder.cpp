#include "experiments/folder.h"

#include <torch/version.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/error.h"
#include "experiments/checkpoints.h"

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
  for (const char* key :
       {"train.keep", "train.checkpoint_every", "train.recompute", "train.recompute_blocks"})
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

void require_same(const std::string& config_file, const RunConfig& now, bool extend) {
  std::string changed;
  for (const auto& difference : changes(config_file, now))
    if (!harmless(difference) && !(extend && about_the_end(difference)))
      changed += (changed.empty() ? "" : ", ") + difference;
  if (!changed.empty())
    throw Error(cat(config_file, " is not the config given now: ", changed),
                "use the same config, or start a new run with another --out");
}

Folder::Folder(const std::string& path, const RunConfig& config, const Begin& begin)
    : path_(path), checkpoints_(path + "/checkpoints") {
  check(!path.empty(), "a run needs a folder to write to");
  if (begin.overwrite) check_removable(path);  // before a lock is left in somebody else's folder
  make();
  lock_ = FileLock::take(file("lock"));
  if (!lock_)
    throw Error(cat("another process is training in ", path_),
                "wait for it, stop it, or choose another folder with --out");
  if (begin.overwrite) remove_run(path);
  existed_ = fs::exists(file("config.yaml"));
  if (existed_) check_there(config, begin);
  write_atomically(file("config.yaml"), print_config(config));
}

void Folder::make() const {
  std::error_code failed;
  fs::create_directories(path_, failed);
  if (failed || !fs::is_directory(path_))
    throw Error(cat("cannot make the folder ", path_, ": ",
                    failed ? failed.message() : "it is something else"));
}

void Folder::check_there(const RunConfig& config, const Begin& begin) const {
  if (!begin.resume && checkpoints_.steps().empty())
    throw Error(cat(path_, " holds a run that ended before its first checkpoint"),
                "--resume begins it again, --overwrite puts a new one in its place");
  if (!begin.resume)
    throw Error(cat(path_, " already holds a run"),
                "continue it with --resume, replace it with --overwrite, or choose another folder "
                "with --out");
  require_same(file("config.yaml"), config, begin.extend);
  if (begin.extend)
    check_end(checkpoints_, read_config(file("config.yaml"), {}).train, config.train);
}

// A run that went on with other texts would be neither the one nor the other.
void Folder::check_data(const Json& info, const tasks::Material& data) const {
  if (!info.contains("data") || info["data"].value("sha256", "") == data.sha256) return;
  std::string folders;
  for (const auto& folder : data.folders) folders += (folders.empty() ? "" : ", ") + folder;
  throw Error(cat("the data in ", folders, " are not those that the run in ", path_,
                  " began with: their sha256 is ", data.sha256.substr(0, 16), "…, not ",
                  info["data"].value("sha256", "").substr(0, 16), "…"),
              "put the old data back, or start a new run with another --out");
}

void Folder::keep_tokenizer(const tasks::Material& data) const {
  std::error_code failed;
  fs::create_directories(file("tokenizer"), failed);
  for (const auto& from : data.tokenizer) {
    const auto to = file("tokenizer/") + fs::path(from).filename().string();
    if (!fs::exists(to)) write_atomically(to, read_file(from));
  }
}

Folder::Machine Folder::settle(const Machine& machine,
                               const std::optional<tasks::Material>& data) const {
  const std::string path = file("info.json");
  if (data) keep_tokenizer(*data);
  if (existed_ && fs::exists(path)) {
    try {
      const auto info = Json::parse(read_file(path));
      if (data) check_data(info, *data);
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
  if (data) {
    info["data"] = {{"sha256", data->sha256}, {"folders", data->folders}};
    info["data"]["bos"] = data->bos ? Json(*data->bos) : Json();
    info["data"]["eos"] = data->eos ? Json(*data->eos) : Json();
  }
  info["started"] = now();
  write_atomically(path, info.dump(2) + "\n");
  return machine;
}

using training::TrainConfig;

bool about_the_end(const std::string& text) {
  for (const std::string key : {"train.steps", "train.stop_at"})
    if (text.rfind(key + ":", 0) == 0 || text.rfind(key + "=", 0) == 0) return true;
  return false;
}

void check_end(const Checkpoints& checkpoints, const TrainConfig& before, const TrainConfig& now) {
  const int64_t step = checkpoints.newest(nullptr);
  if (step < 0) return;
  if (now.steps < step)
    throw Error(cat("the run is at step ", step, " already and cannot end at step ", now.steps),
                cat("train.steps must be at least ", step,
                    "; an earlier checkpoint begins a run of its own with --from"));
  const auto best = read_state(checkpoints.path(step) + "/state.json").best_accuracy;
  if (now.steps > step && now.ended(step, best) && now.steps != before.steps &&
      now.stop_at == before.stop_at)
    throw Error(cat("the run ended at step ", step, ": an evaluation of ", best,
                    " reached train.stop_at, ", now.stop_at),
                "add train.stop_at=0 to go on to the last step");
}

std::string change_of_end(int64_t step, const TrainConfig& before, const TrainConfig& now) {
  if (now.steps == before.steps && now.stop_at == before.stop_at) return "";
  // With the same number of steps it is longer when an evaluation must be better to end it.
  const auto hurdle = [](const TrainConfig& c) { return c.stop_at > 0 ? c.stop_at : 2; };
  const bool longer =
      now.steps == before.steps ? hurdle(now) > hurdle(before) : now.steps > before.steps;
  nlohmann::ordered_json line{{"kind", longer ? "extended" : "shortened"}, {"step", step}};
  if (now.steps != before.steps) line["steps"] = {{"from", before.steps}, {"to", now.steps}};
  if (now.stop_at != before.stop_at)
    line["stop_at"] = {{"from", before.stop_at}, {"to", now.stop_at}};
  return line.dump();
}

}  // namespace lrnn::experiments
