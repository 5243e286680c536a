#pragma once
#include <string>

namespace lrnn::figures {

// One self-contained HTML page: style, text and pictures in a single file that needs no network,
// prints, and follows the reader's light or dark setting. Text is escaped; `html` is taken as it is
// and must come from this folder (a figure or a table).
class Page {
 public:
  explicit Page(std::string title) : title_(std::move(title)) {}
  void heading(const std::string& text);
  void paragraph(const std::string& text);
  void note(const std::string& text);  // small print
  void figure(const std::string& svg, const std::string& caption);
  void html(const std::string& html);
  std::string str() const;

 private:
  std::string title_, body_;
};

}  // namespace lrnn::figures
