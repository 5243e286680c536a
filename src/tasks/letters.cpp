#include "tasks/letters.h"

#include "base/text.h"

namespace lrnn::tasks {
namespace {

bool one_character(const std::string& word) {
  return !word.empty() && bytes_of_character(word) == word.size();
}

constexpr size_t kShown = 60;

}  // namespace

Letters::Letters(const Task& task) : elements_(task.elements()) {
  for (const int64_t t : task.letters()) {
    words_.push_back(task.word(t));
    tokens_.emplace(words_.back(), t);
    characters_ &= one_character(words_.back());
    const int64_t element = elements_ ? elements_->of_token[static_cast<size_t>(t)] : -1;
    if (element < 0) continue;
    token_of_.emplace(element, t);
    characters_ &= element < 10;  // its number is another way to write it
  }
}

int64_t Letters::find(const std::string& text) const {
  if (const auto at = tokens_.find(text); at != tokens_.end()) return at->second;
  if (!elements_) return -1;
  const auto at = token_of_.find(elements_->group.find(text));
  if (at == token_of_.end()) return -1;
  tokens_.emplace(text, at->second);
  return at->second;
}

std::string Letters::some() const {
  std::string out;
  for (const auto& word : words_) {
    if (out.size() >= kShown) return out + " …";
    out += (out.empty() ? "" : " ") + word;
  }
  return out;
}

}  // namespace lrnn::tasks
