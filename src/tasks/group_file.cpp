#include "tasks/group_file.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "base/text.h"
#include "tasks/keys.h"
#include "tasks/shuffle.h"

namespace lrnn::tasks {
namespace {

constexpr const char* kGroupHeader = "seed,input,target";
constexpr int64_t kLargestFile = int64_t{4} << 30;

std::vector<int64_t> read_ids(const std::string& where, const char* begin, const char* end,
                              int64_t symbols) {
  std::vector<int64_t> out;
  while (begin != end) {
    int64_t id = -1;
    const auto [stop, error] = std::from_chars(begin, end, id);
    check(error == std::errc() && (stop == end || *stop == ' '), where,
          ": ids are whole numbers with one space between, got '",
          std::string(begin, std::min(end, begin + 20)), "'");
    check(id >= 0 && id < symbols, where, ": ", id, " is not one of the ids 0 .. ", symbols - 1);
    out.push_back(id);
    begin = stop == end ? end : stop + 1;
  }
  return out;
}

class SharedRows final : public Rows {
 public:
  SharedRows(Split split, GroupFile file, double share) : split_(split), file_(std::move(file)) {
    count_ = std::clamp<int64_t>(int64_t(double(file_.count()) * share), 1, file_.count());
  }
  int64_t count() const override { return count_; }
  std::vector<int64_t> at(uint64_t seed, uint64_t index) const override {
    const auto n = uint64_t(count_), all = uint64_t(file_.count());
    uint64_t j = index % n;
    if (split_ == Split::kTrain) j = Shuffle(n, seed, kEpochStream + index / n * 64)(j);
    const uint64_t place = split_ == Split::kTrain ? j : all - 1 - j;
    return file_.row(int64_t(Shuffle(all, seed, kRowStream)(place)));
  }

 private:
  Split split_;
  GroupFile file_;
  int64_t count_ = 0;
};

}  // namespace

std::string group_file_header() { return cat(kGroupHeader, "\n"); }

std::string group_file_row(uint64_t seed, const std::vector<int64_t>& input,
                           const std::vector<int64_t>& target) {
  std::string out = std::to_string(seed);
  for (const auto* ids : {&input, &target})
    for (size_t i = 0; i < ids->size(); ++i) out += (i ? ' ' : ',') + std::to_string((*ids)[i]);
  return out + "\n";
}

GroupFile::GroupFile(const std::string& path, const GroupWords& words, Range length) {
  std::istringstream in(read_text_file(
      path, {.hint = "`lrnn tasks export` writes such files", .most_bytes = kLargestFile}));
  int64_t number = 0;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    const std::string where = cat(path, ":", ++number);
    if (number == 1)
      check(line == kGroupHeader, where, ": the first line must be '", kGroupHeader, "', got '",
            line.substr(0, 40), "'");
    else if (!line.empty())
      read_line(where, line, words, length);
  }
  check(count_ > 0, path, " holds no sequences");
}

void GroupFile::read_line(const std::string& where, const std::string& line,
                          const GroupWords& words, Range length) {
  const auto first = line.find(','), second = line.find(',', first + 1);
  check(first != std::string::npos && second != std::string::npos, where,
        ": a line is seed,input,target");
  const char* text = line.data();
  const auto input = read_ids(where, text + first + 1, text + second, words.symbols());
  const auto target = read_ids(where, text + second + 1, text + line.size(), words.symbols());
  const auto n = int64_t(input.size());
  check(length.lo <= n && n <= length.hi, where, ": a sequence of length ", n,
        ", but the config asks for [", length.lo, ", ", length.hi, "]");
  check(length_ == 0 || n == length_, where, ": a sequence of length ", n,
        ", but those before are ", length_, " long");
  check(target.size() == input.size(), where, ": ", input.size(), " inputs but ", target.size(),
        " targets");
  for (int64_t t = 0; t < n; ++t)
    check(input[size_t(t)] < words.filler() || t % words.tokens != 0, where, ": position ", t + 1,
          " must hold an element of ", words.group.name());
  const auto answers = words.answers(input);
  for (size_t t = 0; t < answers.size(); ++t)
    check(answers[t] == target[t], where, ": target ", t + 1, " is ", target[t], ", but in ",
          words.name, " it must be ", answers[t]);
  length_ = n;
  ++count_;
  tokens_.insert(tokens_.end(), input.begin(), input.end());
}

std::vector<int64_t> GroupFile::row(int64_t i) const {
  const auto begin = tokens_.begin() + i * length_;
  return {begin, begin + length_};
}

std::shared_ptr<const Rows> rows_for(Split split, GroupFile file, double share) {
  return std::make_shared<SharedRows>(split, std::move(file), share);
}

}  // namespace lrnn::tasks
