#include "text/added_tokens.h"

#include <algorithm>

#include "text/unicode.h"

namespace lrnn::text {
namespace {

bool inside_a_word(std::string_view before, std::string_view after) {
  return (!before.empty() && last_character(before).is(kWord)) ||
         (!after.empty() && character_at(after, 0).is(kWord));
}

size_t without_spaces_at_end(std::string_view text) {
  while (!text.empty()) {
    const auto c = last_character(text);
    if (!c.is(kSpace)) break;
    text.remove_suffix(c.bytes);
  }
  return text.size();
}

size_t spaces_at_start(std::string_view text) {
  size_t at = 0;
  while (at < text.size() && character_at(text, at).is(kSpace)) at += character_at(text, at).bytes;
  return at;
}

}  // namespace

void AddedTokens::add(AddedToken token) {
  auto& list = by_first_[static_cast<unsigned char>(token.content[0])];
  list.push_back(tokens_.size());
  tokens_.push_back(std::move(token));
  std::stable_sort(list.begin(), list.end(), [&](size_t a, size_t b) {
    return tokens_[a].content.size() > tokens_[b].content.size();
  });
}

const AddedToken* AddedTokens::longest(std::string_view text) const {
  for (const size_t i : by_first_[static_cast<unsigned char>(text[0])])
    if (text.starts_with(tokens_[i].content)) return &tokens_[i];
  return nullptr;
}

void AddedTokens::cut(std::string_view text, bool special, const Plain& plain,
                      const Token& token) const {
  size_t done = 0;
  for (size_t at = 0; at < text.size() && !empty();) {
    const auto* found = longest(text.substr(at));
    if (!found) {
      ++at;
      continue;
    }
    size_t begin = at, end = at + found->content.size();
    at = end;
    if (found->special && !special) continue;
    if (found->single_word && inside_a_word(text.substr(0, begin), text.substr(end))) continue;
    if (found->lstrip) begin = std::max(without_spaces_at_end(text.substr(0, begin)), done);
    if (found->rstrip) end += spaces_at_start(text.substr(end));
    if (done < begin) plain(text.substr(done, begin - done));
    token(found->id);
    done = end;
  }
  if (done < text.size()) plain(text.substr(done));
}

}  // namespace lrnn::text
