#pragma once
#include <optional>
#include <string>
#include <unordered_map>

#include "tasks/task.h"

namespace lrnn::tasks {

// The letters of a task by what people write: the word of the token, or, where the letters are
// elements of a group, anything that names the element (see Group::find).
class Letters {
 public:
  explicit Letters(const Task& task);

  // The token; -1 when it is not a letter. Throws when it is a permutation with a mistake in it.
  int64_t find(const std::string& text) const;
  // Whether every letter is one character however it is written, so that words need no spaces.
  bool characters() const { return characters_; }
  bool of_a_group() const { return elements_.has_value(); }
  // Some of them, for errors: "a b", "e (23) (12) …".
  std::string some() const;

 private:
  std::vector<std::string> words_;                           // in the task's order
  mutable std::unordered_map<std::string, int64_t> tokens_;  // what was found before, too
  std::optional<Elements> elements_;
  std::unordered_map<int64_t, int64_t> token_of_;  // element -> letter
  bool characters_ = true;
};

}  // namespace lrnn::tasks
