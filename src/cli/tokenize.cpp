#include <charconv>
#include <iostream>
#include <iterator>
#include <utility>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/random.h"
#include "cli/command.h"
#include "cli/output.h"
#include "text/documents.h"
#include "text/sentence_piece.h"
#include "text/tokenizer.h"

namespace lrnn::cli {
namespace {

using text::Ids;

struct TokenizeArguments {
  std::string tokenizer, file = "-", field = "text";
  bool check = false, special = false, jsonl = false, json = false;
};

struct TokenizerTraining {
  std::vector<std::string> files;
  std::string out, kind = "bpe", field = "text";
  int32_t vocabulary = 32000;
  double sample = 100;
  bool json = false;
};

std::string read_input(const std::string& file) {
  if (file != "-") return read_file(file);
  return {std::istreambuf_iterator<char>(std::cin), {}};
}

void print_ids(const Ids& ids, bool json) {
  if (json) return print_json({{"ids", ids}});
  for (size_t i = 0; i < ids.size(); ++i) std::cout << (i > 0 ? " " : "") << ids[i];
  std::cout << "\n";
}

void check_return(const text::Tokenizer& tokenizer, const Ids& ids, std::string_view text) {
  const auto back = tokenizer.decode(ids);
  if (back == text) return;
  size_t at = 0;
  while (at < back.size() && at < text.size() && back[at] == text[at]) ++at;
  throw Error(cat("the text does not come back: byte ", at, " is the first that differs"),
              "this tokenizer changes texts before it encodes them");
}

int encode_texts(const TokenizeArguments& a) {
  const auto tokenizer = text::open_tokenizer(a.tokenizer);
  const auto encoder = tokenizer->encoder({.special = a.special});
  const std::string input = read_input(a.file);
  const auto one = [&](std::string_view text) {
    Ids ids;
    encoder->encode(text, ids);
    if (a.check) check_return(*tokenizer, ids, text);
    print_ids(ids, a.json);
  };
  if (!a.jsonl) return one(input), kDone;
  size_t line = 0;
  for (size_t at = 0; at < input.size();) {
    const size_t end = std::min(input.find('\n', at), input.size());
    const auto row = std::string_view(input).substr(at, end - at);
    one(text::text_of_line(row, a.field, cat(a.file, ", line ", ++line)));
    at = end + 1;
  }
  return kDone;
}

int decode_ids(const TokenizeArguments& a) {
  const auto tokenizer = text::open_tokenizer(a.tokenizer);
  const std::string input = read_input(a.file);
  Ids ids;
  for (size_t at = input.find_first_not_of(" \t\r\n"); at < input.size();
       at = input.find_first_not_of(" \t\r\n", at)) {
    const size_t end = std::min(input.find_first_of(" \t\r\n", at), input.size());
    int32_t id = 0;
    const auto [stop, error] = std::from_chars(input.data() + at, input.data() + end, id);
    if (error != std::errc() || stop != input.data() + end)
      throw Error(cat("'", input.substr(at, std::min<size_t>(end - at, 20)), "' is no id"),
                  "ids are whole numbers between blanks");
    ids.push_back(id);
    at = end;
  }
  const auto bytes = tokenizer->decode(ids);
  if (a.json)
    print_json({{"text", bytes}});
  else
    std::cout << bytes;
  return kDone;
}

// The lines of the files' documents. Of a large corpus only a share: whether a line is taken is
// decided by its number, so that it is the same one every time.
class CorpusLines {
 public:
  CorpusLines(const TokenizerTraining& a, double share)
      : a_(a), share_(share), documents_(a.files) {}

  bool next(std::string& line) {
    for (;;) {
      while (at_ < text_.size()) {
        const size_t end = std::min(text_.find('\n', at_), text_.size());
        const size_t begin = std::exchange(at_, end + 1);
        if (Random(0, 0, number_++).uniform() >= share_) continue;
        line.assign(text_, begin, end - begin);
        if (line.ends_with('\r')) line.pop_back();
        return true;
      }
      text::Document document;
      if (!documents_.next(document)) return false;
      text_ = document.text(a_.field);
      at_ = 0;
    }
  }

 private:
  const TokenizerTraining& a_;
  double share_;
  text::Documents documents_;
  std::string text_;
  size_t at_ = 0;
  uint64_t number_ = 0;
};

int train_tokenizer(const TokenizerTraining& a) {
  for (const auto& file : a.files)
    check(file != "-", "the files are read twice, so standard input will not do");
  int64_t bytes = 0;
  text::Documents documents(a.files);
  for (text::Document document; documents.next(document);) bytes += int64_t(document.raw.size());
  const double most = a.sample * 1e6;
  CorpusLines lines(a, double(bytes) > most ? most / double(bytes) : 1);
  const auto model =
      text::train_sentence_piece({.vocabulary = a.vocabulary, .kind = a.kind},
                                 [&](std::string& line) { return lines.next(line); });
  const auto tokenizer = text::read_sentence_piece(model, "the new model");
  // What transformers asks for beside the model.
  const Json config = {{"tokenizer_class", "LlamaTokenizer"},
                       {"bos_token", "<s>"},
                       {"eos_token", "</s>"},
                       {"unk_token", "<unk>"},
                       {"add_bos_token", true},
                       {"add_eos_token", false},
                       {"legacy", false}};
  write_file(a.out + "/tokenizer.model", model);
  write_file(a.out + "/tokenizer_config.json", config.dump(2) + "\n");
  if (a.json)
    print_json({{"file", a.out + "/tokenizer.model"}, {"vocabulary", tokenizer->vocabulary()}});
  else
    std::cout << a.out << "/tokenizer.model: " << thousands(tokenizer->vocabulary()) << " pieces\n";
  return kDone;
}

void add_common(CLI::App& app, TokenizeArguments& a, const char* file) {
  app.add_option("--tokenizer", a.tokenizer,
                 "tokenizer.model, tokenizer.json, *.tiktoken, or a folder with one of them")
      ->required()
      ->type_name("T");
  app.add_option("FILE", a.file, file);
  app.add_flag("--json", a.json, "one JSON object");
}

}  // namespace

Action tokenize(CLI::App& app) {
  auto a = std::make_shared<TokenizeArguments>();
  auto t = std::make_shared<TokenizerTraining>();
  app.require_subcommand(1);
  auto* train = app.add_subcommand("train", "a new SentencePiece model from text");
  train->add_option("FILES", t->files, "texts, or *.jsonl (also .gz, .zst)")->required();
  train->add_option("--vocab", t->vocabulary, "pieces (default: 32000)")->type_name("N");
  train->add_option("-o,--out", t->out, "folder of the new tokenizer.model")
      ->required()
      ->type_name("DIR");
  train->add_option("--kind", t->kind, "how pieces are found (default: bpe)")
      ->check(CLI::IsMember({"bpe", "unigram"}))
      ->type_name("NAME");
  train->add_option("--sample", t->sample, "megabytes of text that are used (default: 100)")
      ->check(CLI::PositiveNumber)
      ->type_name("MB");
  train->add_option("--field", t->field, "the text's key in a line of JSONL (default: text)")
      ->type_name("NAME");
  train->add_flag("--json", t->json, "one JSON object");
  train->footer(
      "Pieces for bytes, digits one by one, spaces kept: any text comes back. The same text gives\n"
      "the same file.\n\nExample:\n  lrnn tokenize train tests/data/plays/*.txt --vocab 512 -o "
      "tok");
  auto* to_ids = app.add_subcommand("encode", "a text as ids, without BOS");
  add_common(*to_ids, *a, "the text, one as a whole (default: -, standard input)");
  to_ids->add_flag("--special", a->special, "names of special tokens in the text mean the tokens");
  to_ids->add_flag("--check", a->check, "decode again and compare; exit code 2 if it differs");
  to_ids->add_flag("--jsonl", a->jsonl, "every line is a JSON object with a text of its own");
  to_ids->add_option("--field", a->field, "the text's key in a line of JSONL (default: text)")
      ->type_name("NAME");
  to_ids->footer("Example:\n  lrnn tokenize encode --tokenizer tok --check README.md");
  auto* to_text = app.add_subcommand("decode", "ids as the bytes they stand for");
  add_common(*to_text, *a, "ids between blanks (default: -, standard input)");
  to_text->footer("Example:\n  echo 22557 1526 | lrnn tokenize decode --tokenizer tok");
  app.footer("Example:\n  lrnn tokenize encode --tokenizer tok README.md");
  return [a, t, train, to_ids] {
    if (train->parsed()) return train_tokenizer(*t);
    return to_ids->parsed() ? encode_texts(*a) : decode_ids(*a);
  };
}

}  // namespace lrnn::cli
