#include <charconv>
#include <filesystem>

#include "base/error.h"
#include "base/sha256.h"
#include "text/tokenizer.h"

// Ids that another program made, taken as they are.
namespace lrnn::text {
namespace {

namespace fs = std::filesystem;

class GivenIds final : public Tokenizer {
 public:
  explicit GivenIds(int32_t vocabulary) : vocabulary_(vocabulary) {}

  std::unique_ptr<Encoder> encoder(Reading) const override {
    return std::make_unique<Numbers>(vocabulary_);
  }
  std::string decode(std::span<const int32_t>) const override {
    throw Error("ids that another program made are texts to that program alone");
  }
  int32_t vocabulary() const override { return vocabulary_; }
  std::optional<int32_t> find(std::string_view) const override { return {}; }

 private:
  struct Numbers final : Encoder {
    explicit Numbers(int32_t vocabulary) : vocabulary(vocabulary) {}
    void encode(std::string_view text, Ids& ids) override {
      const char *at = text.data(), *const end = at + text.size();
      while (at < end) {
        if (*at == ' ') {
          ++at;
          continue;
        }
        int32_t id = 0;
        const auto [next, error] = std::from_chars(at, end, id);
        if (error != std::errc() || (next < end && *next != ' '))
          throw Error("the ids are not numbers with blanks between them");
        if (id < 0 || id >= vocabulary)
          throw Error(cat("the id ", id, " is beyond the vocabulary of ", vocabulary));
        ids.push_back(id);
        at = next;
      }
    }
    int32_t vocabulary;
  };

  int32_t vocabulary_;
};

}  // namespace

std::unique_ptr<Tokenizer> given_ids(const std::string& file, int32_t vocabulary) {
  if (!fs::is_regular_file(file))
    throw Error(cat("there is no file ", file), "with --ids the tokenizer is a file");
  auto out = std::make_unique<GivenIds>(vocabulary);
  out->sha256 = sha256_of_file(file);
  out->files = {file};
  const auto config = fs::path(file).parent_path() / "tokenizer_config.json";
  if (fs::exists(config)) out->files.push_back(config.string());
  return out;
}

}  // namespace lrnn::text
