#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Text as ids and back. A tokenizer is read from the files that published models come with; which
// kinds there are, and how each cuts a text, is in the other files of this folder.
namespace lrnn::text {

using Ids = std::vector<int32_t>;

// What encodes, with what it remembers of earlier words: one for each thread.
class Encoder {
 public:
  virtual ~Encoder() = default;
  // Appends the ids of a text, any bytes. What could not come back is an Error.
  virtual void encode(std::string_view text, Ids& ids) = 0;
};

// How texts are read.
struct Reading {
  bool special = false;  // the names of special tokens, such as "<s>", mean these tokens
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  // The tokenizer must outlive what it makes.
  virtual std::unique_ptr<Encoder> encoder(Reading how = {}) const = 0;
  // The bytes that ids stand for; an id that is none is an Error.
  virtual std::string decode(std::span<const int32_t> ids) const = 0;
  virtual int32_t vocabulary() const = 0;  // one more than the largest id
  // The id of the piece or token of that name.
  virtual std::optional<int32_t> find(std::string_view name) const = 0;

  // The tokens that begin and end a document, where the files name them.
  std::optional<int32_t> bos, eos;
  std::string sha256;              // of the first of the files
  std::vector<std::string> files;  // what the tokenizer was read from
  bool open_ended = false;         // special tokens have ids beyond those of the file
};

// A folder, or a file: tokenizer.model, tokenizer.json, *.tiktoken.
std::unique_ptr<Tokenizer> open_tokenizer(const std::string& path);

// Ids that another program made with a tokenizer that is not read here: as texts they are numbers
// with blanks between them, below `vocabulary`. The tokenizer's file is only named, for the sum in
// the manifest and for whoever trains on the data.
std::unique_ptr<Tokenizer> given_ids(const std::string& file, int32_t vocabulary);

}  // namespace lrnn::text
