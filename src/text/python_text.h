#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "text/unicode.h"

// Texts as Python's str treats them: the rules of lm-evaluation-harness are written in it, and a
// white space more or less is another token.
namespace lrnn::text {

bool is_python_space(const Character& c);      // str.isspace, and \s of re
std::string stripped(std::string_view text);   // str.strip()
int64_t characters_in(std::string_view text);  // len()
int64_t words_in(std::string_view text);       // len(re.split(r"\s+", text)): empty ends count, too
std::string capitalised(std::string text);     // str.capitalize(); ASCII letters only
// Whether `part` is in the text, whatever the case of ASCII letters.
bool contains_in_any_case(std::string_view text, std::string_view part);
void replace_all(std::string& text, std::string_view what, std::string_view by);  // str.replace

}  // namespace lrnn::text
