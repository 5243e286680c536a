#include "automata/read/text_format.h"
#include "base/error.h"
#include "base/text.h"

// States and symbols by name while an automaton is read: every reader refuses the same things with
// the same sentences.
namespace lrnn::automata {

void NamedTable::fail(const std::string& what, const std::string& hint) const {
  throw Error(cat(where_, ": ", what), hint);
}

void NamedTable::add_state(const std::string& name) {
  if (name.empty()) fail("a state has no name");
  if (!states_.emplace(name, static_cast<int64_t>(names_.size())).second)
    fail(cat("there are two states '", name, "'"));
  names_.push_back(name);
  if (names_.size() > kMostStates) fail(cat("there are more than ", kMostStates, " states"));
}

// Words are symbols in a row or with spaces between them, so spaces cannot be part of one.
void NamedTable::add_symbol(const std::string& name) {
  if (name.empty()) fail("a symbol is empty");
  for (const char c : name)
    if (static_cast<unsigned char>(c) <= ' ' || c == 127)
      fail("a symbol has a space or a control character in it");
  characters(name, where_);
  if (!symbols_.emplace(name, static_cast<int64_t>(symbol_names_.size())).second)
    fail(cat("there are two symbols '", name, "'"));
  symbol_names_.push_back(name);
  if (symbol_names_.size() > kMostSymbols)
    fail(cat("there are more than ", kMostSymbols, " symbols"));
}

int64_t NamedTable::state(const std::string& name, const std::string& use) const {
  const auto found = states_.find(name);
  if (found != states_.end()) return found->second;
  fail(cat(use, " '", name, "'", use.ends_with("leads to") ? ", which" : "", " is not a state"),
       did_you_mean(name, names_));
}

void NamedTable::set_start(const std::string& name) {
  const int64_t s = state(name, "the start");
  if (start_ >= 0 && start_ != s) fail("there are two start states");
  start_ = s;
}

void NamedTable::accept(const std::string& name) {
  const int64_t s = state(name, "the accepting");
  accept_none();
  if (accepts_[static_cast<size_t>(s)]) fail(cat("'", name, "' accepts twice"));
  accepts_[static_cast<size_t>(s)] = 1;
}

void NamedTable::add(const std::string& from, const std::string& symbol, const std::string& to) {
  const int64_t p = state(from, "the source"), q = state(to, cat("'", from, "' leads to"));
  const auto x = symbols_.find(symbol);
  if (x == symbols_.end())
    fail(cat("'", from, "' reads '", symbol, "', which is not in the alphabet"));
  const auto [at, fresh] = next_.emplace(std::pair(p, x->second), q);
  if (!fresh && at->second != q) fail(cat("'", from, "' reads '", symbol, "' in two ways"));
  if (next_.size() > kMostTransitions)
    fail(cat("there are more than ", kMostTransitions, " transitions"));
}

Automaton NamedTable::finish() const {
  if (names_.empty()) fail("there are no states");
  if (symbol_names_.empty()) fail("the alphabet is empty");
  if (start_ < 0) fail("there is no start state");
  Automaton out;
  out.states = static_cast<int64_t>(names_.size());
  out.symbols = static_cast<int64_t>(symbol_names_.size());
  out.state_names = names_, out.symbol_names = symbol_names_;
  out.start = start_;
  if (marks_) out.accept = accepts_, out.accept.resize(names_.size(), 0);
  for (int64_t s = 0; s < out.states; ++s)
    for (int64_t x = 0; x < out.symbols; ++x) {
      const auto found = next_.find({s, x});
      if (found == next_.end())
        fail(cat("state '", out.state_name(s), "' does not say where '", out.symbol_name(x),
                 "' leads"),
             "every state needs every symbol; add a state that is never left for what should fail");
      out.next.push_back(static_cast<int32_t>(found->second));
    }
  out.check();
  return out;
}

}  // namespace lrnn::automata
