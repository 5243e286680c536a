#include "experiments/checkpoints.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/checksum.h"
#include "base/error.h"

namespace lrnn::experiments {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

constexpr const char* kManifest = "manifest.json";
constexpr const char* kPrefix = "step-";
constexpr const char* kUnfinished = ".unfinished-";  // being made
constexpr const char* kDoomed = ".removed-";         // being deleted
constexpr const char* kDamaged = ".damaged";

void sync_folder(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool ok = file >= 0 && ::fsync(file) == 0;
  const int error = errno;
  if (file >= 0) ::close(file);
  check(ok, "cannot write the folder ", path, ": ", std::strerror(error));
}

void rename_folder(const std::string& from, const std::string& to) {
  check(std::rename(from.c_str(), to.c_str()) == 0, "cannot rename ", from, " to ", to, ": ",
        std::strerror(errno));
}

// First out of sight, then out of existence: a folder under a checkpoint's name is never half gone.
void remove_folder(const fs::path& path) {
  if (!fs::exists(path)) return;
  const auto doomed = path.parent_path() / (kDoomed + path.filename().string());
  std::error_code ignored;
  fs::remove_all(doomed, ignored);
  rename_folder(path, doomed);
  fs::remove_all(doomed, ignored);
}

void write_manifest(const std::string& folder, const Checkpoints::Sums& known) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  Json files = Json::object();
  for (const auto& name : names) {
    const auto found = known.find(name);
    const FileSum sum = found != known.end() ? found->second : sum_of_file(folder + "/" + name);
    files[name] = {{"bytes", sum.bytes}, {"crc32c", sum.crc32c}};
  }
  const Json manifest{{"files", files}, {"crc32c", crc32c(files.dump())}};
  write_atomically(folder + "/" + kManifest, manifest.dump(2) + "\n");
}

std::string damage_of_file(const std::string& path, const Json& expected) {
  const auto sum = sum_of_file(path);
  const auto size = expected.at("bytes").get<uint64_t>();
  if (sum.bytes != size)
    return cat(path, " has ", sum.bytes, " bytes instead of ", size,
               sum.bytes < size ? ": it was cut short" : "");
  if (sum.crc32c != expected.at("crc32c").get<std::string>())
    return cat(path, " is damaged: its checksum is not the one in ", kManifest);
  return "";
}

}  // namespace

int64_t step_of(const std::string& name) {
  const std::string prefix = kPrefix;
  if (name.rfind(prefix, 0) != 0) return -1;
  int64_t step = -1;
  const char *begin = name.data() + prefix.size(), *end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(begin, end, step);
  return error == std::errc() && stop == end && begin != end ? step : -1;
}

std::string Checkpoints::path(int64_t step) const {
  char name[32];
  std::snprintf(name, sizeof name, "%s%08lld", kPrefix, static_cast<long long>(step));
  return folder_ + "/" + name;
}

std::vector<int64_t> Checkpoints::steps() const {
  std::vector<int64_t> out;
  if (!fs::is_directory(folder_)) return out;
  for (const auto& entry : fs::directory_iterator(folder_))
    if (const int64_t step = step_of(entry.path().filename()); step >= 0) out.push_back(step);
  std::sort(out.begin(), out.end());
  return out;
}

void Checkpoints::save(int64_t step,
                       const std::function<Sums(const std::string& folder)>& write) const {
  const std::string final = path(step);
  const std::string making = folder_ + "/" + kUnfinished + fs::path(final).filename().string();
  std::error_code ignored;
  fs::remove_all(making, ignored);
  try {
    fs::create_directories(making);
    write_manifest(making, write(making));
  } catch (const fs::filesystem_error& e) {
    fs::remove_all(making, ignored);
    throw Error(cat("cannot write ", e.path1().string(), ": ", e.code().message()));
  } catch (...) {
    fs::remove_all(making, ignored);
    throw;
  }
  sync_folder(making);
  remove_folder(final);
  rename_folder(making, final);
  sync_folder(folder_);
}

std::string Checkpoints::damage(const std::string& checkpoint) {
  const std::string file = checkpoint + "/" + kManifest;
  try {
    const auto manifest = Json::parse(read_file(file));
    const auto& files = manifest.at("files");
    if (manifest.at("crc32c").get<std::string>() != crc32c(files.dump()))
      return file + " is damaged: its own checksum is wrong";
    for (const auto& [name, expected] : files.items())
      if (auto wrong = damage_of_file(checkpoint + "/" + name, expected); !wrong.empty())
        return wrong;
    return "";
  } catch (const Error& e) {
    return e.what();  // a file is missing or cannot be read
  } catch (const Json::exception&) {
    return file + " is damaged: it is not the JSON lrnn writes";
  }
}

int64_t Checkpoints::newest(std::vector<std::string>* damaged) const {
  const auto found = steps();
  std::string last;
  for (auto step = found.rbegin(); step != found.rend(); ++step) {
    last = damage(path(*step));
    if (last.empty()) return *step;
    if (damaged) damaged->push_back(last);
  }
  if (found.empty()) return -1;
  throw Error(
      cat("no checkpoint in ", folder_, " is whole; the oldest: ", last),
      "start again in another folder, or remove the damaged checkpoints to begin at step 0");
}

void Checkpoints::prune(int64_t keep, int64_t best) const {
  auto all = steps();
  for (int64_t i = 0; i < int64_t(all.size()) - keep; ++i)
    if (all[size_t(i)] != best) remove_folder(path(all[size_t(i)]));
}

void Checkpoints::mark_best(int64_t step) const {
  const fs::path link = fs::path(folder_) / "best", making = fs::path(folder_) / ".unfinished-best";
  std::error_code ignored;
  if (step < 0) {
    fs::remove(link, ignored);
    return;
  }
  fs::remove(making, ignored);
  // A file system without links loses a convenience, not the run.
  std::error_code failed;
  fs::create_symlink(fs::path(path(step)).filename(), making, failed);
  if (!failed) fs::rename(making, link, failed);
}

void Checkpoints::tidy(int64_t step) const {
  if (!fs::is_directory(folder_)) return;
  std::vector<fs::path> leftovers;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    const std::string name = entry.path().filename();
    if (name.rfind(kUnfinished, 0) == 0 || name.rfind(kDoomed, 0) == 0)
      leftovers.push_back(entry.path());
  }
  for (const auto& path : leftovers) fs::remove_all(path);
  for (const int64_t other : steps()) {
    if (other <= step) continue;
    remove_folder(path(other) + kDamaged);
    rename_folder(path(other), path(other) + kDamaged);
  }
}

namespace {

// One list for both directions.
template <class State, class Visit> void fields(State& state, Visit&& visit) {
  visit("step", state.step);
  visit("skipped", state.skipped);
  visit("metrics_bytes", state.metrics_bytes);
  visit("loss_sum", state.loss_sum);
  visit("updates", state.updates);
  visit("right", state.right);
  visit("targets", state.targets);
  visit("best_accuracy", state.best_accuracy);
  visit("best_step", state.best_step);
}

}  // namespace

std::string print(const RunState& state) {
  nlohmann::ordered_json json;
  fields(state, [&](const char* key, const auto& value) { json[key] = value; });
  if (state.best_validation) json["best_validation"] = *state.best_validation;
  if (state.best_loss) json["best_loss"] = *state.best_loss;
  if (state.growth)
    training::Growth::fields(*state.growth,
                             [&](const char* key, int64_t value) { json["growth"][key] = value; });
  return json.dump(2) + "\n";
}

RunState read_state(const std::string& file) { return parse_state(read_file(file), file); }

RunState parse_state(const std::string& text, const std::string& where) {
  RunState state;
  try {
    const auto json = nlohmann::ordered_json::parse(text);
    fields(state, [&](const char* key, auto& value) { json.at(key).get_to(value); });
    if (json.contains("best_validation"))
      state.best_validation = json.at("best_validation").get<double>();
    if (json.contains("best_loss")) state.best_loss = json.at("best_loss").get<double>();
    if (json.contains("growth"))
      training::Growth::fields(state.growth.emplace(), [&](const char* key, int64_t& value) {
        json.at("growth").at(key).get_to(value);
      });
  } catch (const nlohmann::json::exception& e) {
    throw Error(cat(where, " is not the progress of a run: ", e.what()));
  }
  return state;
}

}  // namespace lrnn::experiments
