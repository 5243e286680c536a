#include "text/stream.h"

#include <algorithm>

namespace lrnn::text {

Stream::Stream(const std::vector<std::string>& shards, std::optional<int32_t> bos,
               std::optional<int32_t> eos)
    : bos_(bos), eos_(eos) {
  for (const auto& path : shards) {
    parts_.push_back({path, Shard(path), tokens_});
    tokens_ += parts_.back().shard.tokens();
  }
}

Stream::Stream(std::vector<int32_t> ids, std::vector<DocumentAt> documents)
    : ids_(std::move(ids)), tokens_(int64_t(ids_.size())) {
  std::call_once(documents_->read, [&] { documents_->list = std::move(documents); });
}

void Stream::copy(int64_t first, int64_t count, int64_t* to) const {
  if (parts_.empty()) {
    std::copy_n(ids_.begin() + first, count, to);
    return;
  }
  auto part = std::upper_bound(parts_.begin(), parts_.end(), first,
                               [](int64_t at, const Part& p) { return at < p.first; }) -
              1;
  while (count > 0) {
    const int64_t at = first - part->first, n = std::min(count, part->shard.tokens() - at);
    for (int64_t i = 0; i < n; ++i) to[i] = part->shard[at + i];
    first += n, count -= n, to += n, ++part;
  }
}

const std::vector<DocumentAt>& Stream::documents() const {
  std::call_once(documents_->read, [&] { read_documents(documents_->list); });
  return documents_->list;
}

size_t Stream::document_of(int64_t token) const {
  const auto& all = documents();
  return size_t(std::upper_bound(all.begin(), all.end(), token,
                                 [](int64_t at, const DocumentAt& d) { return at < d.first; }) -
                all.begin()) -
         1;
}

void Stream::read_index(const Part& part, std::vector<DocumentAt>& to) const {
  const auto index = Shard::index(part.path, part.shard.tokens());
  for (const auto& entry : index) to.push_back({part.first + entry.first, 0, entry.bytes});
  if (!index.empty()) return;
  // A foreign shard: what comes before the first sign of a document is the rest of one.
  const auto begins = [&](int64_t at) {
    if (bos_) return part.shard[at] == *bos_;
    return eos_ && part.shard[at - 1] == *eos_;
  };
  for (int64_t i = 0; i < part.shard.tokens(); ++i)
    if (i == 0 || begins(i)) to.push_back({part.first + i, 0, -1});
}

void Stream::read_documents(std::vector<DocumentAt>& to) const {
  for (const auto& part : parts_) read_index(part, to);
  for (size_t i = 0; i < to.size(); ++i)
    to[i].tokens = (i + 1 < to.size() ? to[i + 1].first : tokens_) - to[i].first;
  // An empty document without BOS or EOS has no token that could belong to it.
  std::erase_if(to, [](const DocumentAt& d) { return d.tokens == 0; });
}

}  // namespace lrnn::text
