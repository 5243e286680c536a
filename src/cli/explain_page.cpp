#include <fmt/format.h>

#include <cmath>
#include <complex>
#include <map>

#include "cli/explain.h"
#include "compile/parts.h"
#include "embedded/explain.css.h"
#include "embedded/explain.js.h"
#include "figures/page.h"
#include "figures/svg.h"
#include "figures/table.h"
#include "ops/torch.h"

// `lrnn explain`: the page of a compiled model, its automaton, cascade, matrices and eigenvalues.
namespace lrnn::cli {
namespace {

using compile::Compiled;
using torch::Tensor;

constexpr int64_t kDrawnMatrices = 12;

std::string count(int64_t n, const std::string& what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

// Entries from -1 (blue) over 0 (paper) to 1 (orange).
std::string matrix_svg(const Tensor& m, const std::string& title) {
  const int64_t n = m.size(0);
  const double cell = n <= 6 ? 22 : n <= 12 ? 13 : 160.0 / double(n), size = cell * double(n) + 2;
  figures::Svg svg(size, size, title);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) {
      const double v = m[i][j].item<double>();
      svg.rectangle(1 + double(j) * cell, 1 + double(i) * cell, cell - 1, cell - 1,
                    v < 0 ? "#0072b2" : "#e69f00", 0.06 + 0.94 * std::min(1.0, std::abs(v)));
    }
  return svg.str();
}

std::string plane_svg(const Tensor& eigenvalues, const std::string& title) {
  const double size = 150, middle = size / 2, unit = 58;
  figures::Svg svg(size, size, title);
  svg.line(middle - 66, middle, middle + 66, middle);
  svg.line(middle, middle - 66, middle, middle + 66);
  svg.circle(middle, middle, unit);
  for (int64_t i = 0; i < eigenvalues.size(0); ++i) {
    const auto z = eigenvalues[i].item<c10::complex<double>>();
    svg.mark(middle + unit * z.real(), middle - unit * z.imag(), figures::style(1), 4, 0.8);
  }
  return svg.str();
}

std::string eigenvalue_text(const Tensor& values) {
  std::map<std::string, int> times_seen;
  for (int64_t i = 0; i < values.size(0); ++i) {
    const auto z = values[i].item<c10::complex<double>>();
    const double im = std::abs(z.imag()) < 5e-4 ? 0 : z.imag();
    const double re = std::abs(z.real()) < 5e-4 ? 0 : z.real();
    ++times_seen[im == 0 ? fmt::format("{:.3g}", re)
                         : fmt::format("{:.3g} ± {:.3g}i", re, std::abs(im))];
  }
  std::string out;
  for (const auto& [text, n] : times_seen) {
    const int times = text.back() == 'i' ? n / 2 : n;  // of pairs
    out += (out.empty() ? "" : ", ") + text + (times > 1 ? fmt::format(" ({}×)", times) : "");
  }
  return out;
}

// The matrix that a feature makes the head apply, from the keys and betas of the model itself.
Tensor transition(const compile::Parts& parts, int64_t layer, int64_t head, int64_t rows,
                  int64_t feature) {
  Tensor x = parts.base(1);
  x[0][feature] += 1;
  const Tensor k = parts.observed(layer, x.unsqueeze(0), "k")[0][0].to(torch::kFloat64);
  const Tensor beta = parts.observed(layer, x.unsqueeze(0), "beta")[0][0].to(torch::kFloat64);
  Tensor out = torch::eye(rows, torch::kFloat64);
  for (int64_t j = 0; j < k.size(0); ++j) {
    const Tensor key = k[j][head].slice(0, 0, rows);
    out = out - beta[j][head] * torch::outer(key, torch::matmul(key, out));
  }
  return out;
}

void heads(figures::Page& page, const Compiled& c, const model::Model& model) {
  const auto& net = c.built->network;
  const compile::Parts parts(model, net);
  for (size_t l = 0; l < net.layers.size(); ++l)
    for (size_t h = 0; h < net.layers[l].heads.size(); ++h) {
      const auto& head = net.layers[l].heads[h];
      page.heading(fmt::format("Eigenvalues of layer {}, head {}", l + 1, h + 1));
      page.paragraph(fmt::format(
          "{}; a state of {} × {}. One square per entry of the matrix that the letter multiplies "
          "the state by (orange 1, blue -1), and its eigenvalues beside the unit circle.",
          head.group     ? head.group->name
          : head.one_row ? "a row, kept or overwritten"
                         : "a plane",
          head.rows, head.cols));
      std::string html = "<div class=\"matrices\">\n";
      int64_t shown = 0;
      for (const auto& action : head.actions) {
        if (shown++ == kDrawnMatrices) break;
        const auto& name = net.features[size_t(action.feature)].name;
        const Tensor m = transition(parts, int64_t(l), int64_t(h), head.rows, action.feature);
        const Tensor values = torch::linalg_eigvals(m);
        html += "<figure>" + matrix_svg(m, "matrix: " + name) +
                plane_svg(values, "eigenvalues: " + name) + "<figcaption>" + figures::escape(name) +
                "<br>" + figures::escape(eigenvalue_text(values)) + "</figcaption></figure>\n";
      }
      page.html(html + "</div>\n");
      if (int64_t(head.actions.size()) > kDrawnMatrices)
        page.note(fmt::format("… and {} more", int64_t(head.actions.size()) - kDrawnMatrices));
    }
}

std::string cascade_text(const Compiled& c) {
  figures::Table table({"part", "level", "values", "permuted by", "what it is"});
  for (size_t p = 0; p < c.plan.components.size(); ++p) {
    const auto& component = c.plan.components[p];
    int64_t d = 0;
    for (const auto& level : automata::levels_of(*component.cascade)) {
      const bool group = level.group != "1";
      table.row({std::to_string(p + 1), std::to_string(++d), std::to_string(level.tiles),
                 group ? level.group : "–",
                 component.group_only ? "a group"
                 : group              ? "a group and a flip-flop"
                                      : "a flip-flop"});
    }
  }
  return table.html();
}

bool never_left(const automata::Automaton& a, int64_t s) {
  for (int64_t x = 0; x < a.symbols; ++x)
    if (a.step(s, x) != s) return false;
  return true;
}

// Some letters of every kind, outside states that are never left; the last one changes the state.
std::string first_word(const automata::Automaton& a, bool characters) {
  constexpr int64_t kLetters = 12;
  std::string out;
  int64_t s = a.start;
  for (int64_t i = 0; i < kLetters; ++i) {
    int64_t x = (i * i + i / 3) % a.symbols;
    const auto dull = [&] {
      const int64_t to = a.step(s, x);
      return never_left(a, to) || (i + 1 == kLetters && to == s);
    };
    for (int64_t n = 0; n < a.symbols && dull(); ++n) x = (x + 1) % a.symbols;
    s = a.step(s, x);
    out += (characters || i == 0 ? "" : " ") + a.symbol_name(x);
  }
  return out;
}

std::string as_element(const Json& data) {
  std::string text = data.dump();
  // "</script>" inside a name would end the element.
  for (size_t at = 0; (at = text.find('<', at)) != std::string::npos;)
    text.replace(at, 1, "\\u003c");
  return "<script type=\"application/json\" id=\"data\">" + text + "</script>\n";
}

void word(figures::Page& page, const Compiled& c, model::Model& model) {
  const auto steps = stepping(c, model);
  const auto data = to_json(steps, c);
  page.heading("A word, step by step");
  page.html(
      "<input id=\"word\" aria-label=\"word\" spellcheck=\"false\" value=\"" +
      figures::escape(first_word(c.subject.automaton, data.at("characters").get<bool>())) +
      "\">\n<p class=\"bad\" id=\"problem\"></p>\n<div class=\"walk\"><button id=\"back\" "
      "aria-label=\"one letter back\">‹</button><input id=\"slider\" type=\"range\" min=\"0\" "
      "max=\"0\" value=\"0\" aria-label=\"letters read\"><button id=\"on\" aria-label=\"one "
      "letter on\">›</button></div>\n<p id=\"letters\"></p>\n<p id=\"answer\" "
      "aria-live=\"polite\"></p>\n");
  if (steps.without.empty()) {
    page.paragraph(
        "What the model holds: a matrix H in every head. A letter multiplies it by a matrix A and, "
        "where the head writes, adds a matrix B: H after t letters = A · (H after t - 1) + B. All "
        "numbers are the model's own; orange is positive, blue negative, and a frame marks what "
        "the "
        "letter changed.");
    if (c.built->network.layers.size() > 1)
      page.note(
          "In the first layer A and B depend on the letter alone, further up also on what the "
          "layers "
          "below hold.");
    page.html("<div id=\"heads\"></div>\n");
  } else {
    page.note(steps.without);
  }
  page.html(
      "<div class=\"scroll\"><table><thead><tr><th>letter</th><th>from</th><th>to</th>"
      "<th id=\"coordinates\">coordinates</th></tr></thead><tbody id=\"steps\"></tbody></table>"
      "</div>\n" +
      as_element(data));
}

}  // namespace

std::string explain_page(const Compiled& c, model::Model& model) {
  torch::InferenceMode no_gradients;
  const auto& a = c.subject.automaton;
  figures::Page page(c.subject.title);
  page.html(cat("<style>\n", explain_css, "</style>\n"));
  page.paragraph(
      fmt::format("{}, {}. Plan: {}{}: {}, {} per token, {}.", count(a.states, "state"),
                  count(a.symbols, "symbol"), compile::name_of(c.plan.kind),
                  c.plan.summary.empty() ? "" : " (" + c.plan.summary + ")",
                  count(c.plan.layers, "layer"), count(c.plan.householders, "Householder factor"),
                  std::isfinite(c.t_safe) ? fmt::format("right for about {:.2g} tokens", c.t_safe)
                                          : "exact at every length"));
  show_automaton(page, a,
                 {c.subject.title, "The automaton", "; the coloured state is where the word is"});
  word(page, c, model);
  if (!c.plan.components.empty() && c.plan.kind != compile::PlanKind::kConstant) {
    page.heading("The cascade");
    page.paragraph(
        "The plan is a stack of small machines. Each level holds one of a few values, its "
        "coordinate: which part of the states that the levels above leave open the automaton is "
        "in (in the theory of cascades these parts are called tiles). A letter overwrites the "
        "value, permutes it or leaves it alone.");
    page.html(cascade_text(c));
  }
  heads(page, c, model);
  // The part of the page that moves: a word, a slider, and what the model holds after each letter.
  page.html(cat("<script>\n", explain_js, "</script>\n"));
  return page.str();
}

}  // namespace lrnn::cli
