#pragma once
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

// The documents of a corpus, one after another, whatever kind of file they are in.
namespace lrnn::text {

// A document as it stands in its file.
struct Document {
  std::string raw;
  bool json = false;  // a line of JSONL, else the text itself
  std::string where;  // "a.jsonl, line 7", for errors
  size_t file = 0;    // which of the files it came from

  // The text itself. `field` is its key in a line of JSONL.
  std::string text(const std::string& field) const;
};

// Longer ones are refused: a document is held in memory, and its size stands in 32 bits.
constexpr int64_t kLongestDocument = int64_t{256} << 20;

class Documents {
 public:
  // *.jsonl, also with .gz or .zst; - for JSONL from standard input; any other file is one
  // document.
  explicit Documents(std::vector<std::string> files);
  // False at the end of the last file.
  bool next(Document& document);

 private:
  struct Close {
    int (*close)(FILE*);
    void operator()(FILE* f) const { close(f); }
  };
  void open();
  void finish();
  bool next_line(Document& document);
  void read_whole(Document& document);

  std::vector<std::string> files_;
  size_t file_ = 0, line_ = 0;
  std::unique_ptr<FILE, Close> input_;
  std::string buffer_;
  size_t at_ = 0;
};

// The text of one line of JSONL: an object with the text under `field`. `where` says which line it
// is when it is not.
std::string text_of_line(std::string_view line, const std::string& field, const std::string& where);

}  // namespace lrnn::text
