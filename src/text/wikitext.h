#pragma once
#include <string>

namespace lrnn::text {

// A page of WikiText, whose words were cut apart, as a text again: by the rules of
// lm-evaluation-harness, slips included, because published perplexities were measured so.
std::string wikitext_page(std::string page);

}  // namespace lrnn::text
