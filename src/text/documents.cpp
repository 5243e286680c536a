#include "text/documents.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "base/json.h"

namespace lrnn::text {
namespace {

bool ends_with(const std::string& file, const char* end) { return file.ends_with(end); }

bool is_lines(const std::string& file) {
  return file == "-" || ends_with(file, ".jsonl") || ends_with(file, ".jsonl.gz") ||
         ends_with(file, ".jsonl.zst");
}

std::string quoted(const std::string& file) {
  std::string out = "'";
  for (const char c : file) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

[[noreturn]] void too_long(const std::string& where) {
  throw Error(cat(where, ": the document is longer than ", kLongestDocument >> 20,
                  " MB and would not fit into memory"),
              "cut it into several documents; what was prepared before it is kept");
}

void check_file(const std::string& file) {
  for (const char* end : {".gz", ".zst", ".parquet", ".json", ".xz", ".bz2", ".zip"})
    if (ends_with(file, end) && !is_lines(file))
      throw Error(
          cat(file, ": files of the kind *", end, " are not read here"),
          ends_with(file, ".parquet")
              ? "`python -m lrnn prepare` reads them"
              : "texts, *.jsonl, *.jsonl.gz and *.jsonl.zst are, and JSONL through a pipe (-)");
  if (file == "-") return;
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0)
    throw Error(cat("cannot read ", file, ": ", std::strerror(errno)));
  if (S_ISDIR(info.st_mode)) throw Error(cat(file, " is a folder, not a file"), "name its files");
  if (!is_lines(file) && info.st_size > kLongestDocument) too_long(file);
}

}  // namespace

std::string Document::text(const std::string& field) const {
  return json ? text_of_line(raw, field, where) : raw;
}

Documents::Documents(std::vector<std::string> files) : files_(std::move(files)) {
  for (const auto& file : files_) check_file(file);
}

void Documents::open() {
  const auto& file = files_[file_];
  const bool gzip = ends_with(file, ".gz"), zstd = ends_with(file, ".zst");
  // The programs of these formats, rather than two libraries more.
  if (gzip || zstd)
    input_ = {::popen(cat(gzip ? "gzip -dc < " : "zstd -dcq < ", quoted(file)).c_str(), "re"),
              {::pclose}};
  else if (file == "-")
    input_ = {stdin, {[](FILE*) { return 0; }}};
  else
    input_ = {std::fopen(file.c_str(), "rbe"), {std::fclose}};
  if (!input_) throw Error(cat("cannot read ", file, ": ", std::strerror(errno)));
  line_ = 0;
  buffer_.clear();
  at_ = 0;
}

void Documents::finish() {
  const auto& file = files_[file_];
  if (std::ferror(input_.get()))
    throw Error(cat("cannot read ", file, " to its end: ", std::strerror(errno)));
  const auto close = input_.get_deleter().close;
  if (close(input_.release()) != 0)
    throw Error(cat(file, " could not be unpacked to its end"),
                "it is damaged, or the program gzip or zstd is not installed");
  ++file_;
}

bool Documents::next(Document& document) {
  while (file_ < files_.size()) {
    if (!is_lines(files_[file_])) {
      read_whole(document);
      return true;
    }
    if (!input_) open();
    if (next_line(document)) return true;
    finish();
  }
  return false;
}

void Documents::read_whole(Document& document) {
  open();
  document = {.raw = {}, .json = false, .where = files_[file_], .file = file_};
  std::string block(size_t{1} << 20, '\0');
  while (const size_t n = std::fread(block.data(), 1, block.size(), input_.get())) {
    document.raw.append(block, 0, n);
    if (int64_t(document.raw.size()) > kLongestDocument) too_long(document.where);
  }
  finish();
}

// Blank lines are no documents.
bool Documents::next_line(Document& document) {
  for (;;) {
    size_t end = buffer_.find('\n', at_);
    while (end == buffer_.npos) {
      buffer_.erase(0, at_);
      at_ = 0;
      const size_t held = buffer_.size();
      if (int64_t(held) > kLongestDocument) too_long(cat(files_[file_], ", line ", line_ + 1));
      buffer_.resize(held + (size_t{1} << 20));
      const size_t n = std::fread(buffer_.data() + held, 1, buffer_.size() - held, input_.get());
      buffer_.resize(held + n);
      if (n == 0) break;
      end = buffer_.find('\n', held);
    }
    const bool last = end == buffer_.npos;
    if (last && at_ >= buffer_.size()) return false;
    const auto row = std::string_view(buffer_).substr(at_, last ? end : end - at_);
    at_ = last ? buffer_.size() : end + 1;
    ++line_;
    if (row.find_first_not_of(" \t\r") == row.npos) continue;
    document = {.raw = std::string(row),
                .json = true,
                .where = cat(files_[file_], ", line ", line_),
                .file = file_};
    return true;
  }
}

std::string text_of_line(std::string_view line, const std::string& field,
                         const std::string& where) {
  using Json = nlohmann::json;
  Json object;
  try {
    object = read_json<Json>(line, 64);
  } catch (const BadJson& e) {
    throw Error(cat(where, ": ", e.what()), "a line is one JSON object, in UTF-8");
  }
  const auto found = object.is_object() ? object.find(field) : object.end();
  if (!object.is_object() || found == object.end())
    throw Error(cat(where, ": there is no '", field, "' in it"), "--field names the text's key");
  if (!found->is_string()) throw Error(cat(where, ": '", field, "' is no text"));
  return std::move(found->get_ref<std::string&>());
}

}  // namespace lrnn::text
