#include "figures/page.h"

#include "embedded/page.css.h"
#include "figures/svg.h"

namespace lrnn::figures {
void Page::heading(const std::string& text) { body_ += "<h2>" + escape(text) + "</h2>\n"; }
void Page::paragraph(const std::string& text) { body_ += "<p>" + escape(text) + "</p>\n"; }
void Page::note(const std::string& text) {
  body_ += "<p class=\"note\">" + escape(text) + "</p>\n";
}
void Page::html(const std::string& html) { body_ += html; }

void Page::figure(const std::string& svg, const std::string& caption) {
  body_ += "<figure>\n" + svg + "<figcaption>" + escape(caption) + "</figcaption>\n</figure>\n";
}

std::string Page::str() const {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
         "<meta name=\"color-scheme\" content=\"light dark\">\n<title>" +
         escape(title_) + "</title>\n<style>\n" + page_css + "</style>\n</head>\n<body>\n<h1>" +
         escape(title_) + "</h1>\n" + body_ + "</body>\n</html>\n";
}

}  // namespace lrnn::figures
