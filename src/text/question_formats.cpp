#include "text/question_formats.h"

#include <algorithm>

#include "base/json.h"
#include "text/python_text.h"
#include "text/question.h"
#include "text/wikitext.h"

namespace lrnn::text {
namespace {

using Json = nlohmann::json;

// HellaSwag's texts are pages of WikiHow with their marks.
std::string clean(std::string text) {
  text = stripped(text);
  replace_all(text, " [title]", ". ");
  for (size_t at = 0; (at = text.find('[', at)) != std::string::npos;) {
    const size_t end = text.find_first_of("]\n", at);  // marks end on their line
    if (end == std::string::npos || text[end] == '\n')
      ++at;
    else
      text.erase(at, end + 1 - at);
  }
  replace_all(text, "  ", " ");
  return text;
}

std::string text_of(const Json& line, const char* key) { return line.at(key).get<std::string>(); }
int64_t number_of(const Json& value) {
  return value.is_string() ? std::stoll(value.get<std::string>()) : value.get<int64_t>();
}

Json choice(const std::string& context, const std::vector<std::string>& choices, int64_t gold) {
  Json list = Json::array();
  for (const auto& one : choices) list.push_back(" " + one);
  return {{"context", context}, {"choices", list}, {"gold", gold}};
}

Json piqa(const Json& line) {
  return choice("Question: " + text_of(line, "goal") + "\nAnswer:",
                {text_of(line, "sol1"), text_of(line, "sol2")}, number_of(line.at("label")));
}

Json hellaswag(const Json& line) {
  std::vector<std::string> endings;
  for (const auto& ending : line.at("endings")) endings.push_back(clean(ending.get<std::string>()));
  return choice(clean(text_of(line, "activity_label") + ": " + text_of(line, "ctx_a") + " " +
                      capitalised(text_of(line, "ctx_b"))),
                endings, number_of(line.at("label")));
}

// Two contexts, one continuation.
Json winogrande(const Json& line) {
  const auto sentence = text_of(line, "sentence");
  const size_t at = sentence.find('_');
  if (at == std::string::npos) throw BadJson("'sentence' has no _");
  const auto before = sentence.substr(0, at);
  return {{"contexts", {before + text_of(line, "option1"), before + text_of(line, "option2")}},
          {"target", " " + stripped(sentence.substr(at + 1))},
          {"gold", number_of(line.at("answer")) - 1}};
}

Json arc(const Json& line) {
  const auto& choices = line.at("choices");
  const auto texts = choices.at("text").get<std::vector<std::string>>();
  const auto labels = choices.at("label").get<std::vector<std::string>>();
  const auto at = std::find(labels.begin(), labels.end(), text_of(line, "answerKey"));
  return choice("Question: " + text_of(line, "question") + "\nAnswer:", texts, at - labels.begin());
}

Json lambada(const Json& line) {
  const auto text = text_of(line, "text");
  const size_t at = text.rfind(' ');
  if (at == std::string::npos) return {{"context", ""}, {"target", " " + text}};
  return {{"context", text.substr(0, at)}, {"target", text.substr(at)}};
}

// A page as it is published; words and bytes are counted before its words are put together again.
Json wikitext(const Json& line) {
  const auto page = text_of(line, "page");
  return {{"text", wikitext_page(page)}, {"words", words_in(page)}, {"bytes", page.size()}};
}

// SWDE, FDA and SQuAD as texts to be completed.
Json completion(const Json& line) {
  return {{"context", stripped(text_of(line, "text"))},
          {"contains", stripped(text_of(line, "value"))}};
}

std::string guess(const Json& line) {
  if (line.contains("goal") && line.contains("sol1")) return "piqa";
  if (line.contains("endings")) return "hellaswag";
  if (line.contains("option1")) return "winogrande";
  if (line.contains("answerKey")) return "arc";
  if (line.contains("page")) return "wikitext";
  if (line.contains("text") && line.contains("value")) return "swde";
  return "native";
}

}  // namespace

const std::vector<std::string> kFormats = {
    "auto",    "native",   "piqa", "hellaswag",        "winogrande", "arc",
    "lambada", "wikitext", "swde", "squad_completion", "fda"};

Json as_native(const Json& line, const std::string& format) {
  const std::string kind = format == "auto" ? guess(line) : format;
  if (kind == "piqa") return piqa(line);
  if (kind == "hellaswag") return hellaswag(line);
  if (kind == "winogrande") return winogrande(line);
  if (kind == "arc") return arc(line);
  if (kind == "lambada") return lambada(line);
  if (kind == "wikitext") return wikitext(line);
  if (kind == "swde" || kind == "squad_completion" || kind == "fda") return completion(line);
  return line;
}

}  // namespace lrnn::text
