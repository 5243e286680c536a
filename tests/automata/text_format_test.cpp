#include "automata/read/text_format.h"

#include <gtest/gtest.h>

#include "automata/read/source.h"
#include "base/error.h"

namespace lrnn::automata {
namespace {

constexpr const char* kEven =
    R"({"alphabet":["a","b"],"states":["even","odd"],"start":"even","accept":["even"],)"
    R"("next":{"even":{"a":"odd","b":"even"},"odd":{"a":"even","b":"odd"}}})";

std::string with(std::string text, const std::string& old, const std::string& now) {
  const size_t at = text.find(old);
  EXPECT_NE(at, std::string::npos) << old;
  return text.replace(at, old.size(), now);
}

template <class Read> std::string complaint(Read read) {
  try {
    read();
    return "no error";
  } catch (const Error& e) {
    return e.what();
  }
}
std::string json_error(const std::string& text) {
  return complaint([&] { from_json(text, "f"); });
}
std::string graph_error(const std::string& text) {
  return complaint([&] { from_graph(text, "f"); });
}

void expect_same(const Automaton& a, const Automaton& b) {
  EXPECT_EQ(a.states, b.states);
  EXPECT_EQ(a.next, b.next);
  EXPECT_EQ(a.start, b.start);
  EXPECT_EQ(a.accept, b.accept);
  EXPECT_EQ(a.symbol_names, b.symbol_names);
  EXPECT_EQ(a.state_names, b.state_names);
}

TEST(JsonFormat, ReadsTheDocumentedExample) {
  const auto a = from_json(kEven, "f");
  EXPECT_EQ(a.states, 2);
  EXPECT_EQ(a.symbol_names, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(a.state_name(a.read({0, 1, 0, 0})), "odd");
  EXPECT_TRUE(a.accepts({0, 0}));
  EXPECT_FALSE(a.accepts({0}));
}

TEST(JsonFormat, MistakesAreNamed) {
  EXPECT_EQ(json_error(with(kEven, R"("odd"],)", R"("even"],)")), "f: there are two states 'even'");
  EXPECT_EQ(json_error(with(kEven, R"(["a","b"])", R"(["a","a"])")),
            "f: there are two symbols 'a'");
  EXPECT_EQ(json_error(with(kEven, R"("start":"even")", R"("start":"evn")")),
            "f: the start 'evn' is not a state");
  EXPECT_EQ(json_error(with(kEven, R"({"a":"odd","b":"even"})", R"({"a":"odd"})")),
            "f: state 'even' does not say where 'b' leads");
  EXPECT_EQ(
      json_error(with(kEven, R"({"a":"odd","b":"even"})", R"({"a":"odd","b":"even","c":"odd"})")),
      "f: 'even' reads 'c', which is not in the alphabet");
  EXPECT_EQ(json_error(with(kEven, R"("a":"odd")", R"("a":"add")")),
            "f: 'even' leads to 'add', which is not a state");
}

TEST(JsonFormat, BrokenTextIsRefused) {
  EXPECT_EQ(json_error("{\"alphabet\": [\"a\","), "f: this is not JSON: line 1, column 19");
  EXPECT_EQ(json_error("[1,2]"), "f: an automaton is a JSON object");
  EXPECT_EQ(json_error("[99E999999]"), "f: a number in it is too large for any type");
  EXPECT_EQ(json_error("{}"), "f: 'alphabet' must be a list of names");
  EXPECT_EQ(json_error("\xff\xfe{}"), "f: this is not JSON: line 1, column 1");
  EXPECT_EQ(json_error(with(kEven, "\"even\"", "\"ev\xff\"")).substr(0, 21),
            "f: this is not JSON: ");
  EXPECT_EQ(json_error(std::string(100000, '[')), "f: it is nested too deeply");
  EXPECT_EQ(json_error(with(kEven, R"("accept":["even"])", R"("accept":["even"],"start":"odd")")),
            "f: the key 'start' comes twice");
  EXPECT_EQ(json_error(with(kEven, R"("accept")", R"("final")")), "f: 'final' is not a key");
  EXPECT_EQ(json_error(with(kEven, R"(["a","b"])", R"(["a",""])")), "f: a symbol is empty");
  EXPECT_EQ(json_error(with(kEven, R"(["a","b"])", R"(["a"," b"])")),
            "f: a symbol has a space or a control character in it");
}

TEST(Formats, WhatIsWrittenIsReadBack) {
  for (const auto& e : examples()) {
    auto a = e.make();
    if (a.state_names.empty())
      for (int64_t s = 0; s < a.states; ++s)
        a.state_names.push_back("q \"" + std::to_string(s) + "\\");
    if (a.accept.empty()) a.accept.assign(static_cast<size_t>(a.states), 0);
    expect_same(from_json(to_json(a), "f"), a);
    auto b = from_graph(to_graph(a), "f");
    // A drawing without double circles accepts nothing and rejects nothing.
    if (b.accept.empty()) b.accept.assign(static_cast<size_t>(b.states), 0);
    // The order of symbols is the one in which edges name them.
    EXPECT_EQ(minimal(a).states, minimal(b).states) << e.name;
    EXPECT_EQ(b.state_names, a.state_names);
    for (int64_t s = 0; s < a.states; ++s)
      for (int64_t x = 0; x < a.symbols; ++x) {
        const auto y = std::find(b.symbol_names.begin(), b.symbol_names.end(), a.symbol_name(x)) -
                       b.symbol_names.begin();
        ASSERT_EQ(b.step(s, y), a.step(s, x)) << e.name;
      }
  }
}

TEST(GraphFormat, ReadsWhatPeopleDraw) {
  const auto a = from_graph(R"(// parity
    digraph parity {
      rankdir = LR; size="8,5"
      node [shape = doublecircle]; even;
      node [shape = circle];
      start [shape=point]
      start -> even
      even -> odd [label = "a"]; odd -> even [label="a", color=red];
      even -> even [label = b] odd -> odd [label = "b"];  /* two
      lines */
    })",
                            "f");
  expect_same(a, from_json(kEven, "f"));
}

// Parity of a's, drawn in other ways: what tells the start, and what accepts.
std::string even_drawn(const std::string& start, const std::string& even) {
  return "digraph { s [" + start + "]; s -> even; even [" + even +
         "]; even -> odd -> even [label=a] even -> even [label=b] odd -> odd [label=b] }";
}

TEST(GraphFormat, TheStartIsWhereANodeThatIsNoStatePoints) {
  for (const char* start : {"shape=point", "shape=none", "shape=plaintext", "shape=plain",
                            "style=invis", "style=\"invis,bold\"", "width=-0.5, shape=point"}) {
    const auto a = from_graph(even_drawn(start, "shape=doublecircle"), "f");
    expect_same(a, from_json(kEven, "f"));
  }
}

TEST(GraphFormat, DoubleCirclesAcceptAndWithoutThemStatesAreTracked) {
  for (const char* even : {"shape=doublecircle", "peripheries=2", "shape=circle peripheries=2"})
    EXPECT_EQ(from_graph(even_drawn("shape=point", even), "f").accept, (std::vector<uint8_t>{1, 0}))
        << even;
  EXPECT_TRUE(from_graph(even_drawn("shape=point", "shape=circle"), "f").accept.empty());
  EXPECT_TRUE(from_graph(even_drawn("shape=point", "peripheries=1"), "f").accept.empty());
}

// As `dot -Tdot` of Graphviz 2.43 writes it, long strings broken over lines.
TEST(GraphFormat, ReadsWhatGraphvizPrints) {
  const auto a = from_graph(R"gv(digraph {
	graph [bb="0,0,214.49,105.99",
		rankdir=LR
	];
	node [label="\N"];
	""	[height=0.05,
		pos="1.8,36.497",
		shape=point,
		width=0.05];
	even	[height=1.0138,
		pos="77.097,36.497",
		shape=doublecircle,
		width=1.0138];
	"" -> even	[pos="e,40.468,36.497 3.6232,36.497 6.6513,36.497 17.65,36.497 30.197,36.497"];
	odd	[height=0.5,
		pos="186.54,36.497",
		width=0.77632];
	even -> odd	[label=a,
		lp="136.09,43.997",
		pos="e,158.42,36.497 113.87,36.497 124.88,36.497 137.03,\
36.497 148.15,36.497"];
	odd -> even	[label=a,
		lp="136.09,24.997"];
	even -> even	[label="\
b",
		lp="77.097,98.494"];
	odd -> odd	[label=b,
		lp="186.54,79.997"];
}
)gv",
                            "f");
  expect_same(a, from_json(kEven, "f"));
}

TEST(GraphFormat, TheCommaIsASymbolToo) {
  auto a = Automaton::from(2, 3, [](int64_t s, int64_t x) { return x == 2 ? 1 - s : s; });
  a.symbol_names = {"a", "b", ","};
  a.state_names = {"p", "q"};
  a.accept = {1, 0};
  expect_same(from_graph(to_graph(a), "f"), a);
}

TEST(GraphFormat, MistakesAreNamed) {
  EXPECT_EQ(graph_error("graph { a -- b }"), "f: line 1: expected 'digraph', found 'graph'");
  EXPECT_EQ(graph_error("digraph { a -- b }"), "f: line 1: edges are written ->");
  EXPECT_EQ(graph_error("digraph {\n a -> "), "f: line 2: expected a state, found 'the end'");
  EXPECT_EQ(graph_error("digraph { a -> a }"), "f: the edge from 'a' to 'a' has no label");
  EXPECT_EQ(graph_error("digraph { a -> a [label=x] }"), "f: there is no start state");
  EXPECT_EQ(graph_error("digraph { s [shape=point]; s -> a; a -> a [label=x]; a -> b [label=x]; b "
                        "-> b [label=x] }"),
            "f: 'a' reads 'x' in two ways");
  EXPECT_EQ(graph_error("digraph { s [shape=point]; s -> a; a -> b [label=x] }"),
            "f: state 'b' does not say where 'x' leads");
  EXPECT_EQ(graph_error("digraph { \"a }"), "f: line 1: a '\"' is never closed");
  EXPECT_EQ(graph_error(""), "f: line 1: expected 'digraph', found 'the end'");
  EXPECT_EQ(graph_error("digraph { \xff }"), "f is not UTF-8: column 11 is no character");
}

TEST(GraphFormat, SaysHowToDrawAStart) {
  try {
    from_graph("digraph { a -> a [label=x] }", "f");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.hint(), "point at it: start [shape=point]; start -> the_first_state;");
  }
}

TEST(Formats, FilesThatAreNotThere) {
  EXPECT_EQ(complaint([] { from_file("/no/such/file"); }), "there is no file /no/such/file");
  EXPECT_EQ(complaint([] { from_file("/"); }), "/ is a folder, not a file");
}

}  // namespace
}  // namespace lrnn::automata
