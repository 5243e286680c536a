#include "text/question.h"

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "text/python_text.h"
#include "text/question_formats.h"

namespace lrnn::text {
namespace {

using Json = nlohmann::json;

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
  throw Error(cat(where, ": ", what),
              "a line is {\"context\", \"choices\", \"gold\"}, {\"context\", \"target\"}, "
              "{\"context\", \"contains\"} or {\"text\"}; see docs/lm.md");
}

std::string string_at(const Json& line, const char* key) {
  if (!line.contains(key) || !line[key].is_string()) throw BadJson(cat("'", key, "' is no text"));
  return line[key].get<std::string>();
}
std::vector<std::string> strings_at(const Json& line, const char* key) {
  std::vector<std::string> out;
  if (line.contains(key) && line[key].is_array())
    for (const auto& item : line[key])
      if (item.is_string()) out.push_back(item.get<std::string>());
  if (out.size() < 2 || out.size() != line[key].size())
    throw BadJson(cat("'", key, "' is no list of two or more texts"));
  return out;
}

Question native(const Json& line) {
  Question out;
  if (line.contains("text")) {
    out.kind = Question::kRolling;
    out.text = string_at(line, "text");
    if (out.text.empty()) throw BadJson("'text' is empty");
    out.words = line.value("words", words_in(out.text));
    out.bytes = line.value("bytes", int64_t(out.text.size()));
    return out;
  }
  if (line.contains("contains")) {
    out.kind = Question::kCompletion;
    out.text = string_at(line, "context"), out.wanted = string_at(line, "contains");
    return out;
  }
  if (line.contains("choices")) {
    const auto context = string_at(line, "context");
    for (const auto& choice : strings_at(line, "choices")) out.pairs.push_back({context, choice});
  } else if (line.contains("contexts")) {
    const auto target = string_at(line, "target");
    out.swapped = true;
    for (const auto& context : strings_at(line, "contexts")) out.pairs.push_back({context, target});
  } else {
    out.kind = Question::kCloze;
    out.pairs.push_back({string_at(line, "context"), string_at(line, "target")});
  }
  for (const auto& pair : out.pairs) {
    if (pair.continuation.empty()) throw BadJson("a continuation is empty");
    const std::string_view said = pair.continuation;
    out.characters.push_back(characters_in(said.substr(said.front() == ' ')));
  }
  if (out.kind == Question::kCloze) return out;
  if (!line.contains("gold") || !line["gold"].is_number_integer() || line["gold"] < 0 ||
      line["gold"] >= int64_t(out.pairs.size()))
    throw BadJson(cat("'gold' is not one of 0 .. ", out.pairs.size() - 1));
  out.gold = line["gold"].get<size_t>();
  return out;
}

bool all_spaces(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const auto c = character_at(text, at);
    if (!is_python_space(c)) return false;
    at += c.bytes;
  }
  return true;
}

int32_t prefix_of(const Asking& how) {
  if (how.prefix < 0)
    throw Error(
        "the first token of a text needs something before it, and the tokenizer has "
        "neither BOS nor EOS");
  return how.prefix;
}

}  // namespace

std::vector<Question> read_questions(const std::string& file, const std::string& format) {
  const std::string text = read_text_file(
      file,
      {.hint = "questions are lines of JSON; see docs/lm.md", .most_bytes = int64_t{1} << 30});
  std::vector<Question> out;
  int64_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line(text.data() + at, end - at);
    at = end + 1, ++number;
    if (all_spaces(line)) continue;
    const std::string where = cat(file, ", line ", number);
    try {
      const auto json = read_json<Json>(line);
      if (!json.is_object()) throw BadJson("it is no object");
      out.push_back(native(as_native(json, format)));
    } catch (const BadJson& e) {
      refuse(where, e.what());
    } catch (const Json::exception&) {
      refuse(where, "it is not JSON of that kind");
    }
    out.back().where = where;
    if (out.back().kind != out[0].kind || out.back().swapped != out[0].swapped)
      refuse(where, "it is of another kind than the first line");
  }
  if (out.empty()) throw Error(cat(file, " holds no questions"));
  return out;
}

Request request_of(const Question::Pair& pair, Encoder& encoder, const Asking& how) {
  std::string context = pair.context, continuation = pair.continuation;
  while (!context.empty() && is_python_space(last_character(context))) {
    const size_t n = last_character(context).bytes;
    continuation.insert(0, context, context.size() - n, n);
    context.resize(context.size() - n);
  }
  Request out;
  size_t before = 0;
  if (context.empty()) {
    out.ids = {prefix_of(how)};
    before = 1;
    encoder.encode(continuation, out.ids);
  } else {
    if (how.bos) out.ids = {how.prefix};
    Ids alone = out.ids;
    encoder.encode(context, alone);
    before = alone.size();
    encoder.encode(context + continuation, out.ids);
  }
  if (out.ids.size() <= before) throw Error("a continuation has no token of its own");
  out.scored = out.ids.size() - before;
  if (int64_t(out.scored) > how.longest)
    throw Error(
        cat("a continuation has ", out.scored, " tokens, more than --max-length ", how.longest));
  const auto most = size_t(how.longest) + 1;
  if (out.ids.size() > most) out.ids.erase(out.ids.begin(), out.ids.end() - ptrdiff_t(most));
  return out;
}

Ids prompt_of(const Question& question, Encoder& encoder, const Asking& how) {
  Ids out;
  if (how.bos || question.text.empty()) out.push_back(prefix_of(how));
  encoder.encode(question.text, out);
  if (how.longest <= kCompletionTokens)
    throw Error(cat("a completion needs room for ", kCompletionTokens, " tokens"),
                cat("give a --max-length above ", kCompletionTokens));
  const auto most = size_t(how.longest - kCompletionTokens);
  if (out.size() > most) out.erase(out.begin(), out.end() - ptrdiff_t(most));
  return out;
}

std::vector<Request> rolling_requests(const Ids& ids, const Asking& how) {
  const int32_t prefix = prefix_of(how);
  const auto longest = size_t(how.longest);
  std::vector<Request> out;
  for (size_t done = 0; done < ids.size();) {
    const size_t scored = std::min(longest, ids.size() - done), end = done + scored;
    Request next{.ids = {}, .scored = scored};
    if (done == 0)
      next.ids.push_back(prefix),
          next.ids.insert(next.ids.end(), ids.begin(), ids.begin() + ptrdiff_t(end));
    else
      next.ids.assign(ids.begin() + ptrdiff_t(end - longest - 1), ids.begin() + ptrdiff_t(end));
    out.push_back(std::move(next));
    done = end;
  }
  return out;
}

}  // namespace lrnn::text
