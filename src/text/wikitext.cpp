#include "text/wikitext.h"

#include <string_view>

#include "text/python_text.h"

namespace lrnn::text {
namespace {

// No white space inside a pair: ( a ) becomes (a). A pair ends at the first `close`, and between
// quotation marks, where both are alike, the next pair begins behind it.
void tighten(std::string& text, char open, char close) {
  std::string out;
  size_t at = 0;
  while (true) {
    const size_t begin = text.find(open, at);
    const size_t end = begin == std::string::npos ? begin : text.find(close, begin + 1);
    if (end == std::string::npos) break;
    out.append(text, at, begin + 1 - at);
    out += stripped(std::string_view(text).substr(begin + 1, end - begin - 1));
    out += close;
    at = end + 1;
  }
  out.append(text, at);
  text = std::move(out);
}

// Meant to join an apostrophe with the digit behind it; what it does is this.
void digits_between_slashes(std::string& text) {
  const std::string_view before = "/' ";
  for (size_t at = 0; (at = text.find(before, at)) != std::string::npos;) {
    const size_t digit = at + before.size();
    if (digit + 1 < text.size() && '0' <= text[digit] && text[digit] <= '9' &&
        text[digit + 1] == '/') {
      const std::string_view by = "/'[0-9]/";
      text.replace(at, digit + 2 - at, by);
      at += by.size();
    } else {
      ++at;
    }
  }
}

}  // namespace

std::string wikitext_page(std::string page) {
  replace_all(page, "s '", "s'");
  digits_between_slashes(page);
  for (const char* mark : {"-", ",", "."}) replace_all(page, std::string(" @") + mark + "@ ", mark);
  for (const char* mark : {":", ";", ".", "!", "?", ","})
    replace_all(page, std::string(" ") + mark + " ", std::string(mark) + " ");
  tighten(page, '(', ')'), tighten(page, '[', ']'), tighten(page, '{', '}');
  tighten(page, '"', '"'), tighten(page, '\'', '\'');
  replace_all(page, "= = = =", "====");
  replace_all(page, "= = =", "===");
  replace_all(page, "= =", "==");
  replace_all(page, " \u00B0 ", "\u00B0");
  replace_all(page, " \n", "\n");
  replace_all(page, "\n ", "\n");
  replace_all(page, " N ", " 1 ");
  replace_all(page, " 's", "'s");
  return page;
}

}  // namespace lrnn::text
