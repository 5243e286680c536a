#include <algorithm>
#include <map>

#include "automata/read/text_format.h"
#include "base/error.h"
#include "base/text.h"

namespace lrnn::automata {
namespace {

struct Token {
  enum Kind { kName, kArrow, kMark, kEnd } kind;
  std::string text;
  bool quoted = false;
  size_t line = 1;
};

// Names, "names", -> and single marks; comments are // , /* */ and lines that begin with #.
class GraphLexer {
 public:
  GraphLexer(const std::string& text, const NamedTable& table) : text_(text), table_(table) {}

  Token next() {
    skip();
    if (at_ == text_.size()) return {Token::kEnd, "the end", false, line_};
    const char c = text_[at_];
    if (c == '"') return quoted();
    if (text_.compare(at_, 2, "->") == 0) return at_ += 2, Token{Token::kArrow, "->", false, line_};
    if (text_.compare(at_, 2, "--") == 0) fail("edges are written ->");
    size_t end = at_;
    if (text_[end] == '-' && end + 1 < text_.size() && part_of_name(text_[end + 1])) ++end;  // -0.5
    while (end < text_.size() && part_of_name(text_[end])) ++end;
    if (end == at_) return Token{Token::kMark, std::string(1, text_[at_++]), false, line_};
    const std::string name = text_.substr(at_, end - at_);
    at_ = end;
    return {Token::kName, name, false, line_};
  }

  [[noreturn]] void fail(const std::string& what) const {
    table_.fail(cat("line ", line_, ": ", what),
                "automata are drawn as digraph { a -> b [label=\"x\"]; }");
  }

 private:
  static bool part_of_name(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || (c & 0x80);
  }

  void skip() {
    for (; at_ < text_.size(); ++at_) {
      const bool line_start = at_ == 0 || text_[at_ - 1] == '\n';
      if (text_[at_] == '\n')
        ++line_;
      else if (text_.compare(at_, 2, "//") == 0 || (text_[at_] == '#' && line_start)) {
        at_ = std::min(text_.find('\n', at_), text_.size()) - 1;
      } else if (text_.compare(at_, 2, "/*") == 0) {
        const size_t end = text_.find("*/", at_ + 2);
        if (end == std::string::npos) fail("'/*' is never closed");
        line_ +=
            static_cast<size_t>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                           text_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
        at_ = end + 1;
      } else if (text_[at_] != ' ' && text_[at_] != '\t' && text_[at_] != '\r') {
        return;
      }
    }
  }

  Token quoted() {
    Token out{Token::kName, "", true, line_};
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      // Graphviz breaks long strings so when it writes them.
      if (text_.compare(at_, 2, "\\\n") == 0) {
        ++at_, ++line_;
        continue;
      }
      if (text_[at_] == '\\' && at_ + 1 < text_.size() &&
          (text_[at_ + 1] == '"' || text_[at_ + 1] == '\\'))
        ++at_;
      if (text_[at_] == '\n') ++line_;
      out.text += text_[at_];
    }
    if (at_ == text_.size()) fail("a '\"' is never closed");
    ++at_;
    return out;
  }

  const std::string& text_;
  const NamedTable& table_;
  size_t at_ = 0, line_ = 1;
};

using Attributes = std::map<std::string, std::string>;

class GraphReader {
 public:
  GraphReader(const std::string& text, const std::string& where)
      : table_(where), lexer_(text, table_), token_{Token::kEnd, "", false, 1} {
    characters(text, where);
    advance();
  }

  Automaton read() {
    if (token_.text == "strict") advance();
    if (token_.text != "digraph") lexer_.fail(cat("expected 'digraph', found '", token_.text, "'"));
    advance();
    if (token_.kind == Token::kName) advance();
    expect("{");
    while (!is("}")) statement();
    advance();
    if (token_.kind != Token::kEnd) lexer_.fail("there is more after the '}' of the digraph");
    return build();
  }

 private:
  struct Edge {
    std::string from, to, label;
    bool labelled;
  };

  void advance() { token_ = lexer_.next(); }
  bool is(const char* mark) const { return token_.kind == Token::kMark && token_.text == mark; }
  void expect(const char* mark) {
    if (!is(mark)) lexer_.fail(cat("expected '", mark, "', found '", token_.text, "'"));
    advance();
  }
  std::string name(const char* what) {
    if (token_.kind != Token::kName)
      lexer_.fail(cat("expected ", what, ", found '", token_.text, "'"));
    std::string out = token_.text;
    advance();
    return out;
  }

  void statement() {
    if (is(";")) return advance();
    const bool quoted = token_.quoted;
    const std::string first = name("a state");
    if (!quoted && first == "subgraph") lexer_.fail("subgraphs are not read");
    if (is("=")) {  // a setting of the whole drawing
      advance();
      name("a value");
      return;
    }
    if (!quoted && (first == "graph" || first == "node" || first == "edge")) {
      const auto given = attributes();
      if (first == "node")
        for (const auto& [key, value] : given) node_defaults_[key] = value;
      return;
    }
    std::vector<std::string> path = {first};
    touch(first);
    while (token_.kind == Token::kArrow) {
      advance();
      path.push_back(name("a state"));
      touch(path.back());
    }
    const auto given = attributes();
    if (path.size() == 1)
      for (const auto& [key, value] : given) nodes_[first][key] = value;
    const auto label = given.find("label");
    for (size_t i = 0; i + 1 < path.size(); ++i)
      edges_.push_back(
          {path[i], path[i + 1], label == given.end() ? "" : label->second, label != given.end()});
  }

  void touch(const std::string& node) {
    if (nodes_.emplace(node, node_defaults_).second) order_.push_back(node);
  }

  Attributes attributes() {
    Attributes out;
    while (is("[")) {
      advance();
      while (!is("]")) {
        const std::string key = name("the name of an attribute");
        std::string value = "true";
        if (is("=")) advance(), value = name("a value");
        out[key] = value;
        if (is(",") || is(";")) advance();
      }
      advance();
    }
    return out;
  }

  std::string attribute(const std::string& node, const char* key) const {
    const auto& given = nodes_.at(node);
    const auto found = given.find(key);
    return found == given.end() ? "" : found->second;
  }
  // A node that is only there to point at the start.
  bool pointer(const std::string& node) const {
    const auto shape = attribute(node, "shape");
    return shape == "point" || shape == "none" || shape == "plain" || shape == "plaintext" ||
           attribute(node, "style").find("invis") != std::string::npos;
  }
  bool doubled(const std::string& node) const {
    return attribute(node, "shape") == "doublecircle" || attribute(node, "peripheries") == "2";
  }

  static std::vector<std::string> symbols(const std::string& label) {
    if (label == ",") return {label};
    std::vector<std::string> out;
    for (size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
      end = label.find(',', begin);
      const auto piece = label.substr(begin, end - begin);
      const size_t first = piece.find_first_not_of(" \t\n"), last = piece.find_last_not_of(" \t\n");
      out.push_back(first == std::string::npos ? "" : piece.substr(first, last - first + 1));
    }
    return out;
  }

  Automaton build() {
    for (const auto& node : order_)
      if (!pointer(node)) table_.add_state(node);
    for (const auto& node : order_)
      if (!pointer(node) && doubled(node)) table_.accept(node);
    for (const auto& e : edges_) {
      if (pointer(e.to))
        table_.fail(cat("an edge leads to '", e.to, "', which only points at the start"));
      if (pointer(e.from)) {
        table_.set_start(e.to);
        continue;
      }
      if (!e.labelled)
        table_.fail(cat("the edge from '", e.from, "' to '", e.to, "' has no label"),
                    "label it with its symbols, such as [label=\"a,b\"]");
      for (const auto& x : symbols(e.label)) {
        if (!table_.has_symbol(x)) table_.add_symbol(x);
        table_.add(e.from, x, e.to);
      }
    }
    if (!table_.has_start())
      table_.fail("there is no start state",
                  "point at it: start [shape=point]; start -> the_first_state;");
    return table_.finish();
  }

  NamedTable table_;
  GraphLexer lexer_;
  Token token_;
  Attributes node_defaults_;
  std::map<std::string, Attributes> nodes_;
  std::vector<std::string> order_;
  std::vector<Edge> edges_;
};

std::string in_quotes(const std::string& text) {
  std::string out = "\"";
  for (const char c : text)
    out += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return out + "\"";
}

}  // namespace

Automaton from_graph(const std::string& text, const std::string& where) {
  return GraphReader(text, where).read();
}

std::string to_graph(const Automaton& a) {
  std::string out = "digraph {\n  rankdir=LR;\n  \"\" [shape=point];\n";
  for (int64_t s = 0; s < a.states; ++s) {
    const bool accepts = !a.accept.empty() && a.accept[static_cast<size_t>(s)];
    out += cat("  ", in_quotes(a.state_name(s)), " [shape=", accepts ? "doublecircle" : "circle",
               "];\n");
  }
  out += cat("  \"\" -> ", in_quotes(a.state_name(a.start)), ";\n");
  for (int64_t s = 0; s < a.states; ++s) {
    // One edge per target; a comma would be read as the space between symbols, so it has its own.
    std::map<std::pair<int64_t, bool>, std::string> labels;
    for (int64_t x = 0; x < a.symbols; ++x) {
      auto& label = labels[{a.step(s, x), a.symbol_name(x) == ","}];
      label += (label.empty() ? "" : ",") + a.symbol_name(x);
    }
    for (const auto& [to, label] : labels)
      out += cat("  ", in_quotes(a.state_name(s)), " -> ", in_quotes(a.state_name(to.first)),
                 " [label=", in_quotes(label), "];\n");
  }
  return out + "}\n";
}

}  // namespace lrnn::automata
