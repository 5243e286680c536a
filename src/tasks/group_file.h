#pragma once
#include <string>

#include "tasks/follow.h"
#include "tasks/group_words.h"

// Words of a group as the published files hold them: a CSV with the header seed,input,target and
// ids separated by spaces, without BOS; <group>=<length>.csv is its name.
namespace lrnn::tasks {

// One line of such a file, header and rows alike.
std::string group_file_header();
std::string group_file_row(uint64_t seed, const std::vector<int64_t>& input,
                           const std::vector<int64_t>& target);

// Reads a file whose sequences all have one length, inside `length`. Every answer in it is checked
// against the group; a wrong one is an Error that names the line.
class GroupFile {
 public:
  GroupFile(const std::string& path, const GroupWords& words, Range length);
  int64_t count() const { return count_; }
  std::vector<int64_t> row(int64_t i) const;

 private:
  void read_line(const std::string& where, const std::string& line, const GroupWords& words,
                 Range length);
  int64_t length_ = 0, count_ = 0;
  std::vector<uint16_t> tokens_;
};

// The share of the rows that a seed gives to a split: training takes its rows from the front of a
// random order and passes over them again and again, in a new order each time; evaluation takes
// its rows from the end.
std::shared_ptr<const Rows> rows_for(Split split, GroupFile file, double share);

}  // namespace lrnn::tasks
