#include <charconv>
#include <iostream>
#include <iterator>

#include "base/atomic_file.h"
#include "base/error.h"
#include "cli/command.h"
#include "cli/output.h"
#include "text/json_line.h"
#include "text/tokenizer.h"

namespace lrnn::cli {
namespace {

using text::Ids;

struct TokenizeArguments {
  std::string tokenizer, file = "-", field = "text";
  bool check = false, special = false, jsonl = false, json = false;
};

std::string read_input(const std::string& file) {
  if (file != "-") return read_file(file);
  return {std::istreambuf_iterator<char>(std::cin), {}};
}

void print(const Ids& ids, bool json) {
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

int encode(const TokenizeArguments& a) {
  const auto tokenizer = text::open_tokenizer(a.tokenizer);
  const auto encoder = tokenizer->encoder({.special = a.special});
  const std::string input = read_input(a.file);
  const auto one = [&](std::string_view text) {
    Ids ids;
    encoder->encode(text, ids);
    if (a.check) check_return(*tokenizer, ids, text);
    print(ids, a.json);
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

int decode(const TokenizeArguments& a) {
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
  app.require_subcommand(1);
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
  return [a, to_ids] { return to_ids->parsed() ? encode(*a) : decode(*a); };
}

}  // namespace lrnn::cli
