#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

// A second opinion on regular expressions that shares nothing with src/automata: its own grammar
// reader and Brzozowski's derivatives instead of automata. Slow, small and direct.
namespace lrnn::testing_regex {

struct Node;
using Ref = std::shared_ptr<const Node>;
struct Node {
  char kind;  // 0 nothing, e empty word, s symbols, . concat, | union, & both, ! not, * star
  std::set<char> symbols;
  Ref a, b;
};

inline Ref make(char kind, Ref a = nullptr, Ref b = nullptr, std::set<char> symbols = {}) {
  return std::make_shared<Node>(Node{kind, std::move(symbols), std::move(a), std::move(b)});
}
inline Ref concat(Ref a, Ref b) {
  if (a->kind == '0' || b->kind == '0') return make('0');
  if (a->kind == 'e') return b;
  if (b->kind == 'e') return a;
  return make('.', a, b);
}
inline Ref either(Ref a, Ref b) {
  if (a->kind == '0') return b;
  if (b->kind == '0') return a;
  return make('|', a, b);
}

inline bool nullable(const Ref& r) {
  switch (r->kind) {
    case 'e':
    case '*': return true;
    case '.':
    case '&': return nullable(r->a) && nullable(r->b);
    case '|': return nullable(r->a) || nullable(r->b);
    case '!': return !nullable(r->a);
    default: return false;
  }
}

inline Ref derive(const Ref& r, char x) {
  switch (r->kind) {
    case 's': return make(r->symbols.count(x) ? 'e' : '0');
    case '|': return either(derive(r->a, x), derive(r->b, x));
    case '&': return make('&', derive(r->a, x), derive(r->b, x));
    case '!': return make('!', derive(r->a, x));
    case '*': return concat(derive(r->a, x), r);
    case '.': {
      Ref first = concat(derive(r->a, x), r->b);
      return nullable(r->a) ? either(first, derive(r->b, x)) : first;
    }
    default: return make('0');
  }
}

class Reader {
 public:
  Reader(std::string text, const std::string& alphabet)
      : text_(std::move(text)), alphabet_(alphabet.begin(), alphabet.end()) {}
  Ref read() { return alternatives(); }

 private:
  bool at(char c) const { return i_ < text_.size() && text_[i_] == c; }
  Ref alternatives() {
    Ref r = both();
    while (at('|')) ++i_, r = make('|', r, both());
    return r;
  }
  Ref both() {
    Ref r = sequence();
    while (at('&')) ++i_, r = make('&', r, sequence());
    return r;
  }
  Ref sequence() {
    Ref r = make('e');
    while (i_ < text_.size() && !at('|') && !at('&') && !at(')')) r = concat(r, negated());
    return r;
  }
  Ref negated() {
    if (!at('!')) return repeated();
    ++i_;
    return make('!', negated());
  }
  Ref repeated() {
    Ref r = atom();
    for (;; ++i_) {
      if (at('*'))
        r = make('*', r);
      else if (at('+'))
        r = concat(r, make('*', r));
      else if (at('?'))
        r = make('|', make('e'), r);
      else if (at('{'))
        r = counted(r);
      else
        return r;
    }
  }
  Ref counted(Ref r) {
    const size_t close = text_.find('}', i_), comma = text_.find(',', i_);
    const bool range = comma < close;
    const int least = std::stoi(text_.substr(i_ + 1));
    const bool open = range && comma + 1 == close;
    const int most = !range ? least : open ? least : std::stoi(text_.substr(comma + 1));
    Ref out = open ? make('*', r) : make('e');
    for (int i = least; i < most; ++i) out = make('|', make('e'), concat(r, out));
    for (int i = 0; i < least; ++i) out = concat(r, out);
    i_ = close;
    return out;
  }
  Ref atom() {
    const char c = text_[i_++];
    if (c == '(') {
      Ref r = alternatives();
      ++i_;
      return r;
    }
    if (c == '.') return make('s', nullptr, nullptr, alphabet_);
    if (c == '\\') return make('s', nullptr, nullptr, {text_[i_++]});
    if (c != '[') return make('s', nullptr, nullptr, {c});
    const bool none = at('^');
    if (none) ++i_;
    std::set<char> in;
    for (; !at(']'); ++i_) {
      const char low = text_[i_];
      if (text_[i_ + 1] == '-') i_ += 2;
      for (const char x : alphabet_)
        if (x >= low && x <= text_[i_]) in.insert(x);
    }
    ++i_;
    if (!none) return make('s', nullptr, nullptr, in);
    std::set<char> out;
    for (const char x : alphabet_)
      if (!in.count(x)) out.insert(x);
    return make('s', nullptr, nullptr, out);
  }

  std::string text_;
  std::set<char> alphabet_;
  size_t i_ = 0;
};

inline bool matches(const std::string& regex, const std::string& alphabet,
                    const std::string& word) {
  Ref r = Reader(regex, alphabet).read();
  for (const char x : word) r = derive(r, x);
  return nullable(r);
}

}  // namespace lrnn::testing_regex
