#include "automata/read/source.h"

#include <algorithm>
#include <set>

#include "automata/algebra/permutation.h"
#include "automata/read/regex.h"
#include "automata/read/text_format.h"
#include "base/error.h"

namespace lrnn::automata {
namespace {

int64_t letter_id(const std::string& text, const Group& group) {
  const int64_t id = group.find(text);
  if (id < 0)
    throw Error(
        cat("--letters: '", text, "' is not an element of ", group.name()),
        cat("elements are the numbers 0 .. ", group.order() - 1, ", or names such as ",
            group.element(group.order() - 1), "; all, swaps and generators name sets of them"));
  return id;
}

// Elements that move two points at most, as in the published task with swaps only.
bool is_swap(const Group& group, int64_t a) {
  const auto name = group.element(a);
  const bool one_cycle = name[0] == '(' && std::count(name.begin(), name.end(), '(') == 1;
  return a == 0 || (one_cycle && group.product(a, a) == 0);
}

std::vector<int64_t> letters_of(const Group& group, const std::string& text) {
  std::vector<int64_t> out;
  if (text == "generators" || (text.empty() && group.name()[0] == '(')) return group.generators();
  if (text.empty() || text == "all") {
    for (int64_t a = 0; a < group.order(); ++a) out.push_back(a);
    return out;
  }
  if (text == "swaps") {
    for (int64_t a = 0; a < group.order(); ++a)
      if (is_swap(group, a)) out.push_back(a);
    if (out.size() < 2)
      throw Error(cat("--letters swaps: ", group.name(), " has no swaps of two points"),
                  "groups of permutations such as S5 have them");
    return out;
  }
  for (const auto& element : outer_list(text)) out.push_back(letter_id(element, group));
  if (std::set<int64_t>(out.begin(), out.end()).size() != out.size())
    throw Error("--letters names an element twice");
  return out;
}

Subject load_group(const Source& source) {
  const Group group(source.group);
  const auto letters = letters_of(group, source.letters);
  check(!letters.empty(), "--group ", group.name(), " has no letters to read");
  const bool some = static_cast<int64_t>(letters.size()) < group.order();
  return {cat("the group ", group.name(), some ? cat(" with ", letters.size(), " letters") : ""),
          reachable(right_multiplication(group, letters)), false, group};
}

}  // namespace

Subject load(const Source& source) {
  const int given =
      source.has_regex + !source.file.empty() + !source.group.empty() + !source.example.empty();
  if (given != 1)
    throw Error(
        given ? "more than one automaton was named" : "no automaton was named",
        "give one of --regex R --alphabet ab, --automaton FILE, --group S5, --example NAME");
  if (source.has_regex == source.alphabet.empty())
    throw Error(source.has_regex ? "--regex needs its --alphabet" : "--alphabet belongs to --regex",
                "for example --regex '(ab)*' --alphabet ab");
  if (!source.letters.empty() && source.group.empty())
    throw Error("--letters belongs to --group", "for example --group S5 --letters swaps");
  if (source.has_regex)
    return {cat("the language of ", source.regex),
            from_regex(source.regex, alphabet_of(source.alphabet)), true};
  if (!source.group.empty()) return load_group(source);
  if (!source.file.empty()) {
    auto a = reachable(from_file(source.file));
    const bool recogniser = !a.accept.empty();
    return {cat("the automaton in ", source.file), std::move(a), recogniser};
  }
  const auto& e = find_example(source.example);
  return {cat("the example ", e.name, ": ", e.about), e.make(), e.recogniser};
}

}  // namespace lrnn::automata
