#include "figures/page.h"

#include "figures/svg.h"

namespace lrnn::figures {
namespace {

constexpr const char* kStyle = R"(
:root { --paper: #ffffff; --ink: #1a1a1a; --soft: #555555; --rule: #d8d8d8; --axis: #444444; }
@media (prefers-color-scheme: dark) { @media screen {
  :root { --paper: #16181c; --ink: #ececec; --soft: #b0b0b0; --rule: #3a3d44; --axis: #a0a0a0; } } }
body { background: var(--paper); color: var(--ink); margin: 2rem auto; max-width: 46rem;
  padding: 0 1rem; font: 1rem/1.55 Georgia, "DejaVu Serif", serif; }
h1 { font-size: 1.7rem; line-height: 1.2; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
table { border-collapse: collapse; margin: 1rem 0; width: 100%;
  font: 0.86rem/1.4 "DejaVu Sans", Verdana, sans-serif; }
th, td { text-align: left; padding: 0.3rem 0.6rem; border-bottom: 1px solid var(--rule);
  vertical-align: top; }
thead th { border-bottom: 2px solid var(--axis); }
.number { text-align: right; font-variant-numeric: tabular-nums; }
figure { margin: 1.4rem 0; break-inside: avoid; } svg { max-width: 100%; height: auto; }
figcaption, .note { color: var(--soft); font-size: 0.9rem; }
svg .paper { fill: var(--paper); } svg .ink { fill: var(--ink); } svg .soft { fill: var(--soft); }
svg .open { fill: var(--paper); }
svg .rule { stroke: var(--rule); } svg .axis { stroke: var(--axis); }
)";

}  // namespace

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
         escape(title_) + "</title>\n<style>" + kStyle + "</style>\n</head>\n<body>\n<h1>" +
         escape(title_) + "</h1>\n" + body_ + "</body>\n</html>\n";
}

}  // namespace lrnn::figures
