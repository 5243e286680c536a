#include <fmt/format.h>

#include <map>

#include "cli/explain.h"
#include "figures/draw.h"
#include "figures/page.h"

namespace lrnn::cli {
namespace {

constexpr int64_t kDrawnStates = 40, kDrawnArrows = 72;

// Letters whose arrows can still be told apart; of many, not those that change nothing.
std::vector<int64_t> drawn_letters(const automata::Automaton& a) {
  std::vector<int64_t> all, out;
  for (int64_t x = 0; x < a.symbols; ++x) all.push_back(x);
  if (a.states * a.symbols <= kDrawnArrows) return all;
  const int64_t most = std::max<int64_t>(2, kDrawnArrows / a.states);
  for (int64_t x = 0; x < a.symbols && int64_t(out.size()) < most; ++x)
    for (int64_t s = 0; s < a.states; ++s)
      if (a.step(s, x) != s) {
        out.push_back(x);
        break;
      }
  return out;
}

std::string automaton_svg(const automata::Automaton& a, const std::string& title) {
  figures::Graph g;
  g.title = title;
  g.start = size_t(a.start);
  for (int64_t s = 0; s < a.states; ++s)
    g.nodes.push_back({a.state_name(s), !a.accept.empty() && a.accept[size_t(s)]});
  std::map<std::pair<int64_t, int64_t>, std::string> labels;
  for (int64_t s = 0; s < a.states; ++s)
    for (const int64_t x : drawn_letters(a)) {
      auto& label = labels[{s, a.step(s, x)}];
      label += (label.empty() ? "" : ",") + a.symbol_name(x);
    }
  for (const auto& [pair, label] : labels)
    g.edges.push_back({size_t(pair.first), size_t(pair.second),
                       label.size() > 24 ? label.substr(0, 22) + "…" : label});
  return figures::draw(g);
}

// A page has every id once, and a second automaton has states with the same numbers.
std::string with_ids(std::string svg, const std::string& prefix) {
  for (const std::string mark : {"id=\"", "url(#"})
    for (size_t at = 0; (at = svg.find(mark, at)) != std::string::npos;)
      svg.insert(at += mark.size(), prefix);
  return svg;
}

}  // namespace

void show_automaton(figures::Page& page, const automata::Automaton& a, const Shown& shown) {
  if (a.states > kDrawnStates)
    return page.note(fmt::format("{}: {} states are too many to draw.", shown.what, a.states));
  const auto letters = int64_t(drawn_letters(a).size());
  page.figure(
      with_ids(automaton_svg(a, shown.title), shown.ids),
      fmt::format(
          "{}{}{}{}.", shown.what,
          letters < a.symbols ? fmt::format(", with {} of its {} letters", letters, a.symbols) : "",
          shown.more, a.accept.empty() ? "" : ", and double circles accept"));
}

}  // namespace lrnn::cli
