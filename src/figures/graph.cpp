#include <algorithm>
#include <cmath>
#include <set>

#include "figures/draw.h"
#include "figures/svg.h"

// An automaton as a picture: nodes on a circle, arrows with their letters.
namespace lrnn::figures {
namespace {

struct Point {
  double x, y;
};

constexpr double kNode = 19, kPi = 3.14159265358979;

std::string at(Point p) { return number(p.x) + " " + number(p.y); }

Point towards(Point from, Point to, double distance) {
  const double dx = to.x - from.x, dy = to.y - from.y, length = std::max(std::hypot(dx, dy), 1e-9);
  return {from.x + dx / length * distance, from.y + dy / length * distance};
}

std::string label_at(Point p, const std::string& text) {
  return "<text class=\"ink\" x=\"" + number(p.x) + "\" y=\"" + number(p.y + 4) +
         "\" font-size=\"11\" fill=\"#1a1a1a\" text-anchor=\"middle\" paint-order=\"stroke\" "
         "style=\"stroke:var(--paper,#fff);stroke-width:4px\">" +
         escape(text) + "</text>\n";
}

std::string path(const std::string& d) {
  return "<path d=\"" + d +
         "\" fill=\"none\" class=\"axis\" stroke=\"#444444\" stroke-width=\"1.2\" "
         "marker-end=\"url(#arrow)\"/>\n";
}

class Drawing {
 public:
  explicit Drawing(const Graph& g) : g_(g) {
    const double n = double(std::max<size_t>(g.nodes.size(), 1));
    radius_ = g.nodes.size() < 2 ? 0 : std::max(95.0, n * 3.2 * kNode / (2 * kPi));
    size_ = 2 * (radius_ + 3.6 * kNode);
    centre_ = {size_ / 2, size_ / 2};
    for (size_t i = 0; i < g.nodes.size(); ++i) {
      const double angle = 2 * kPi * double(i) / n + kPi;  // the start is on the left
      where_.push_back(
          {centre_.x + radius_ * std::cos(angle), centre_.y + radius_ * std::sin(angle)});
    }
    for (const auto& e : g.edges) pairs_.emplace(e.from, e.to);
  }

  std::string str() const {
    std::string lines, labels, nodes;
    for (const auto& e : g_.edges) edge(e, lines, labels);
    for (size_t i = 0; i < g_.nodes.size(); ++i) nodes += node(i);
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + number(size_) + "\" height=\"" +
           number(size_) + "\" viewBox=\"0 0 " + number(size_) + " " + number(size_) +
           "\" role=\"img\" font-family=\"DejaVu Sans, Verdana, sans-serif\">\n<title>" +
           escape(g_.title) +
           "</title>\n<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" "
           "markerWidth=\"8\" markerHeight=\"8\" orient=\"auto\"><path class=\"arrow\" "
           "d=\"M0 0L8 4L0 8z\" fill=\"#666666\"/></marker></defs>\n" +
           lines + labels + nodes + "</svg>\n";
  }

 private:
  void edge(const Graph::Edge& e, std::string& lines, std::string& labels) const {
    const Point from = where_[e.from], to = where_[e.to];
    if (e.from == e.to) {
      const Point out = radius_ > 0 ? towards(centre_, from, radius_ + 2.7 * kNode)
                                    : Point{from.x, from.y - 2.7 * kNode};
      const double dx = (out.x - from.x) / 2.7, dy = (out.y - from.y) / 2.7;
      const Point a{from.x + dx * 0.9 - dy * 0.45, from.y + dy * 0.9 + dx * 0.45},
          b{from.x + dx * 0.9 + dy * 0.45, from.y + dy * 0.9 - dx * 0.45};
      const Point c1{a.x + 1.3 * dx - dy * 0.5, a.y + 1.3 * dy + dx * 0.5},
          c2{b.x + 1.3 * dx + dy * 0.5, b.y + 1.3 * dy - dx * 0.5};
      lines += path("M" + at(a) + "C" + at(c1) + " " + at(c2) + " " + at(b));
      labels += label_at({from.x + 2.25 * dx, from.y + 2.25 * dy}, e.label);
      return;
    }
    // Two that run both ways bend apart; a single one is nearly straight.
    const double length = std::hypot(to.x - from.x, to.y - from.y);
    const double bend = (pairs_.contains({e.to, e.from}) ? 0.18 : 0.06) * length;
    const Point middle{(from.x + to.x) / 2 - (to.y - from.y) / length * bend,
                       (from.y + to.y) / 2 + (to.x - from.x) / length * bend};
    lines += path("M" + at(towards(from, middle, kNode)) + "Q" + at(middle) + " " +
                  at(towards(to, middle, kNode + 2)));
    labels +=
        label_at({(from.x + to.x) / 4 + middle.x / 2, (from.y + to.y) / 4 + middle.y / 2}, e.label);
  }

  std::string node(size_t i) const {
    const Point p = where_[i];
    const auto ring = [&](double r) {
      return "<circle class=\"paper axis\" cx=\"" + number(p.x) + "\" cy=\"" + number(p.y) +
             "\" r=\"" + number(r) +
             "\" fill=\"#ffffff\" stroke=\"#444444\" stroke-width=\"1.4\"/>";
    };
    std::string out = "<g class=\"state\" id=\"state-" + std::to_string(i) + "\">" + ring(kNode);
    if (g_.nodes[i].doubled) out += ring(kNode - 3.5);
    const auto& label = g_.nodes[i].label;
    const double size = std::clamp(13 * 30 / std::max(text_width(label, 13), 30.0), 6.0, 13.0);
    out += "<text class=\"ink\" x=\"" + number(p.x) + "\" y=\"" + number(p.y + size / 3) +
           "\" font-size=\"" + number(size) + "\" fill=\"#1a1a1a\" text-anchor=\"middle\">" +
           escape(label) + "</text>";
    if (i == g_.start)
      out += path("M" + number(p.x - 2.6 * kNode) + " " + number(p.y - 1.6 * kNode) + "L" +
                  at(towards(p, {p.x - 2.6 * kNode, p.y - 1.6 * kNode}, kNode + 2)));
    return out + "</g>\n";
  }

  const Graph& g_;
  double radius_ = 0, size_ = 0;
  Point centre_{};
  std::vector<Point> where_;
  std::set<std::pair<size_t, size_t>> pairs_;
};

}  // namespace

std::string draw(const Graph& graph) { return Drawing(graph).str(); }

}  // namespace lrnn::figures
