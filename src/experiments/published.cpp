#include "experiments/published.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/error.h"

namespace lrnn::experiments {
namespace {

using PublishedJson = nlohmann::ordered_json;

Cell read_cell(const PublishedJson& json) {
  Cell out;
  json.at("task").get_to(out.task);
  json.at("model").get_to(out.model);
  json.at("config").get_to(out.config);
  out.at = json.value("at", out.at);
  out.published.best = json.value("best", Summary::kNothing);
  out.published.median = json.value("median", Summary::kNothing);
  out.published.mad = json.value("mad", Summary::kNothing);
  out.says = json.value("says", out.says);
  if (json.contains("curve")) json.at("curve").get_to(out.curve);
  if (json.contains("numbers"))
    for (const auto& [name, value] : json.at("numbers").items())
      out.numbers.emplace_back(name, value.get<double>());
  return out;
}

// Letters and digits in lower case, so that "DeltaNet", "delta_net" and "delta-net" are one word.
std::string plain(const std::string& text) {
  std::string out;
  for (const unsigned char c : text)
    if (std::isalnum(c)) out += char(std::tolower(c));
  return out;
}

bool holds(const std::string& text, const std::string& word) {
  return plain(text).find(plain(word)) != std::string::npos;
}

// Words are separated by commas, but [-1,1] is one word.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> out(1);
  bool inside = false;
  for (const char c : text) {
    if (c == '[') inside = true;
    if (c == ']') inside = false;
    if (c == ',' && !inside)
      out.emplace_back();
    else if (c != ' ' || !inside)
      out.back() += c;
  }
  return out;
}

bool is_range(const std::string& word) { return !word.empty() && word[0] == '['; }

bool names_task(const Cell& cell, const std::string& word) { return holds(cell.task, word); }
bool names_model(const Cell& cell, const std::string& word) {
  return holds(cell.model, word) || holds(cell.config, word);
}
bool names_range(const Cell& cell, const std::string& word) {
  return cell.model.find(word) != std::string::npos;
}

}  // namespace

std::vector<Suite> read_suites(const std::string& configs) {
  const std::string file = configs + "/published.json";
  std::vector<Suite> out;
  try {
    const auto whole = PublishedJson::parse(read_file(file));
    for (const auto& json : whole.at("suites")) {
      Suite suite{json.at("name"), json.at("about"), json.at("source"), json.at("score"), {}};
      for (const auto& cell : json.at("cells")) suite.cells.push_back(read_cell(cell));
      out.push_back(std::move(suite));
    }
  } catch (const PublishedJson::exception& e) {
    throw Error(cat(file, " cannot be read: ", e.what()));
  }
  return out;
}

const Suite& find_suite(const std::vector<Suite>& suites, const std::string& name) {
  std::string known;
  for (const auto& suite : suites) {
    if (suite.name == name) return suite;
    known += (known.empty() ? "" : " ") + suite.name;
  }
  throw Error(cat("there is nothing published under the name '", name, "'"),
              "the names are: " + known);
}

Suite only(Suite suite, const std::string& words) {
  std::vector<std::string> tasks, models, ranges;
  for (const auto& word : words_of(words)) {
    const auto any = [&](auto names) {
      return std::any_of(suite.cells.begin(), suite.cells.end(),
                         [&](const Cell& cell) { return names(cell, word); });
    };
    if (plain(word).empty()) continue;
    // A number alone is in nearly every name: whoever writes -1 or 2 means something else.
    const bool named =
        std::any_of(word.begin(), word.end(), [](unsigned char c) { return std::isalpha(c); });
    if (is_range(word) && any(names_range))
      ranges.push_back(word);
    else if (named && any(names_task))
      tasks.push_back(word);
    else if (named && any(names_model))
      models.push_back(word);
    else
      throw Error(cat("'", word, "' names neither a task nor a model of ", suite.name),
                  cat("`lrnn reproduce ", suite.name, " --list` shows them"));
  }
  const auto chosen = [](const std::vector<std::string>& words, const auto& names) {
    return words.empty() || std::any_of(words.begin(), words.end(), names);
  };
  std::erase_if(suite.cells, [&](const Cell& cell) {
    return !chosen(tasks, [&](const auto& word) { return names_task(cell, word); }) ||
           !chosen(models, [&](const auto& word) { return names_model(cell, word); }) ||
           !chosen(ranges, [&](const auto& word) { return names_range(cell, word); });
  });
  if (suite.cells.empty())
    throw Error(cat("no cell of ", suite.name, " is chosen by '", words, "'"),
                cat("`lrnn reproduce ", suite.name, " --list` shows them"));
  return suite;
}

}  // namespace lrnn::experiments
