#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "text/tokenizer.h"

// Questions to a language model, and the tokens they come to, by the rules of
// lm-evaluation-harness: docs/lm.md.
namespace lrnn::text {

// A line of a file of questions. All lines of a file are of one kind:
//
//   {"context": "…", "choices": [" …", …], "gold": 0}    which continuation is likeliest?
//   {"contexts": ["…", …], "target": " …", "gold": 0}    after which context is it likeliest?
//   {"context": "…", "target": " …"}                     is every token of it the likeliest?
//   {"context": "…", "contains": "…"}                    is that in the likeliest continuation?
//   {"text": "…"}                                        how likely is all of it?
struct Question {
  enum Kind { kChoice, kCloze, kCompletion, kRolling } kind = kChoice;
  struct Pair {
    std::string context, continuation;
  };
  std::vector<Pair> pairs;  // of the first two kinds
  size_t gold = 0;
  bool swapped = false;             // several contexts, one continuation
  std::vector<int64_t> characters;  // of each choice, without its leading space
  std::string text;                 // kRolling; of kCompletion the context
  std::string wanted;               // kCompletion
  int64_t words = 0, bytes = 0;     // of it; a line may say others ("words", "bytes")
  std::string where;                // "a.jsonl, line 7"
};

// `format`: native, or the name of a dataset whose own fields are read (kFormats); auto goes by the
// fields. An empty file or a line that is none of these is an Error that names it.
std::vector<Question> read_questions(const std::string& file, const std::string& format);
extern const std::vector<std::string> kFormats;

// Ids of which the last `scored` are predicted from those before them.
struct Request {
  Ids ids;
  size_t scored = 0;
};

struct Asking {
  bool bos = false;        // every context begins with `prefix`
  int32_t prefix = -1;     // what stands where there is no context: BOS, or EOS
  int64_t longest = 2048;  // tokens that are read
};

// White space at the end of the context belongs to the continuation, and the continuation's ids are
// those of both texts together beyond those of the context.
Request request_of(const Question::Pair& pair, Encoder& encoder, const Asking& how);
// What a completion goes on from. Of a long context the end, so that the answer has room.
Ids prompt_of(const Question& question, Encoder& encoder, const Asking& how);
constexpr int64_t kCompletionTokens = 48;      // at most,
constexpr const char* kCompletionStop = "\n";  // and not beyond the line
// Every token once: windows of `longest` targets, the first behind the prefix, each next with one
// token of context; the last is filled up to the left.
std::vector<Request> rolling_requests(const Ids& ids, const Asking& how);

}  // namespace lrnn::text
