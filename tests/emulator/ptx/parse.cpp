#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "tests/emulator/ptx/text.h"

namespace lrnn::emulator {
namespace {

bool in_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%';
}

// Walks over the text; comments count as space.
class Reader {
 public:
  Reader(std::string_view text, size_t at, uint32_t line) : text_(text), at_(at), line_(line) {}

  void space() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        ++line_, ++at_;
      } else if (c == ' ' || c == '\t' || c == '\r') {
        ++at_;
      } else if (text_.compare(at_, 2, "//") == 0) {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (text_.compare(at_, 2, "/*") == 0) {
        at_ = text_.find("*/", at_) + 2;
      } else {
        break;
      }
    }
  }
  bool ended() { return space(), at_ >= text_.size(); }
  char peek() { return space(), at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void want(char c) {
    if (!take(c)) stop(std::string("'") + c + "' is missing");
  }
  // A name, a number or a word with dots: `%tid.x`, `mad.lo.s32`, `.align`, `shared::cta`.
  std::string_view word() {
    space();
    const size_t begin = at_;
    while (at_ < text_.size() &&
           (in_name(text_[at_]) || text_[at_] == '.' || text_.compare(at_, 2, "::") == 0))
      at_ += text_[at_] == ':' ? 2 : 1;
    return text_.substr(begin, at_ - begin);
  }
  void skip_to(char c) {
    while (peek() != c && at_ < text_.size()) ++at_;
  }
  [[noreturn]] void stop(const std::string& why) {
    fault("PTX, line " + std::to_string(line_) + ": " + why + " before \"" +
          std::string(text_.substr(at_, 60)) + "\"");
  }
  void skip_block() {
    want('{');
    for (int depth = 1; depth > 0; ++at_) {
      const char c = peek();
      if (c == '\0') stop("'}' is missing");
      depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    }
  }
  size_t at() const { return at_; }
  uint32_t line() const { return line_; }

 private:
  std::string_view text_;
  size_t at_;
  uint32_t line_;
};

size_t bytes_of(std::string_view type) {  // ".b8", ".f32"
  const int bits = std::atoi(std::string(type.substr(type.find_first_of("0123456789"))).c_str());
  return size_t(bits) / 8;
}

// After `.param`, `.shared` or `.local`: `.align 8 .b8 name[16]`, `.u32 name`, `.v4 .f32 name`.
Variable variable(Reader& in, std::string_view& name) {
  Variable v;
  size_t element = 1;
  for (;;) {
    std::string_view word = in.word();
    if (word == ".align") {
      v.align = size_t(std::atoi(std::string(in.word()).c_str()));
    } else if (word[0] == '.') {
      if (word == ".ptr" || word == ".global" || word == ".shared" || word == ".const") continue;
      element = bytes_of(word);
    } else {
      name = word;
      break;
    }
  }
  v.align = std::max(v.align, element);
  v.size = element;
  if (in.take('[')) {
    v.size = in.peek() == ']' ? 0 : element * size_t(std::atoll(std::string(in.word()).c_str()));
    in.want(']');
  }
  return v;
}

size_t place(Variable& v, size_t& end) {
  v.offset = (end + v.align - 1) / v.align * v.align;
  return end = v.offset + v.size;
}

class Entry {
 public:
  Entry(std::string_view name, Reader in) : in_(in) {
    text_.name = name;
    text_.first_line = in_.line();
    scopes_.emplace_back();
  }

  Text parse() {
    in_.word();  // the name
    if (in_.take('(')) {
      while (!in_.take(')')) {
        in_.word();  // .param
        std::string_view name;
        Variable v = variable(in_, name);
        place(v, text_.parameter_bytes);
        text_.parameters[name] = v, text_.arguments.push_back(v);
        in_.take(',');
      }
    }
    while (in_.peek() != '{') {  // .maxntid 512, 1, 1
      const std::string_view word = in_.word();
      if (word == ".maxntid") text_.threads = uint32_t(std::atoi(std::string(in_.word()).c_str()));
      if (word.empty()) in_.take(',');
    }
    in_.want('{');
    int depth = 1;
    while (depth > 0) {
      if (in_.take('{')) {
        ++depth, scopes_.emplace_back();
      } else if (in_.take('}')) {
        --depth, scopes_.pop_back();
      } else {
        statement();
      }
    }
    return std::move(text_);
  }

 private:
  void statement() {
    int guard = -1;
    bool unless = false;
    const uint32_t line = in_.line();
    if (in_.take('@')) {
      unless = in_.take('!');
      guard = find(in_.word());
    }
    const std::string_view word = in_.word();
    if (word.empty()) in_.stop("a statement is missing");
    if (in_.take(':')) {
      text_.labels[word] = uint32_t(text_.statements.size());
      return;
    }
    if (word[0] == '.') return directive(word);
    Statement s;
    s.opcode = word, s.guard = guard, s.unless = unless, s.line = line;
    while (!in_.take(';')) {
      s.operands.push_back(operand());
      in_.take(',');
    }
    text_.statements.push_back(std::move(s));
  }

  void directive(std::string_view word) {
    if (word == ".reg") {
      const std::string_view type = in_.word();
      const int width = type == ".pred" ? 1 : int(bytes_of(type)) * 8;
      do {
        const std::string_view name = in_.word();
        const int first = int(text_.registers.size());
        int count = 1;
        const bool numbered = in_.take('<');
        if (numbered) {
          count = std::atoi(std::string(in_.word()).c_str());
          in_.want('>');
        }
        (numbered ? scopes_.back().numbered : scopes_.back().single)[name] = first;
        Register r;
        r.width = width;
        text_.registers.insert(text_.registers.end(), size_t(count), r);
      } while (in_.take(','));
      in_.want(';');
    } else if (word == ".shared" || word == ".local") {
      std::string_view name;
      Variable v = variable(in_, name);
      place(v, word == ".shared" ? text_.shared_bytes : text_.local_bytes);
      if (word == ".shared") text_.shared_align = std::max(text_.shared_align, v.align);
      (word == ".shared" ? text_.shared : text_.local)[name] = v;
      in_.want(';');
    } else if (word == ".loc") {  // ends with its line
      const uint32_t line = in_.line();
      while (in_.line() == line && !in_.ended() && in_.peek() != '\n' && in_.line() == line)
        if (in_.word().empty()) in_.take(in_.peek());
    } else {  // .pragma "nounroll";
      in_.skip_to(';');
      in_.want(';');
    }
  }

  Operand operand() {
    Operand o;
    if (in_.take('{')) {
      o.kind = Operand::kList;
      while (!in_.take('}')) {
        o.items.push_back(operand());
        in_.take(',');
      }
      return o;
    }
    if (in_.take('[')) {
      o = operand();
      if (o.kind == Operand::kNumber) o.reg = -1;
      o.kind = Operand::kAddress;
      if (in_.take('+')) o.bits += number(in_.word());
      if (in_.take('-')) o.bits -= number(in_.word());
      while (in_.take(',')) o.items.push_back(operand());
      in_.want(']');
      return o;
    }
    o.negated = in_.take('!');
    const bool minus = in_.take('-');
    const std::string_view word = in_.word();
    if (word.empty()) in_.stop("an operand is missing");
    if (word == "_") return o;
    if (std::isdigit(static_cast<unsigned char>(word[0]))) {
      o.kind = Operand::kNumber;
      o.wide_float = word.size() > 10 && word[0] == '0' && (word[1] == 'd' || word[1] == 'D');
      o.narrow_float = word.size() == 10 && word[0] == '0' && (word[1] == 'f' || word[1] == 'F');
      o.bits = number(word);
      if (minus) o.bits = -o.bits;
      return o;
    }
    o.reg = lookup(word);
    o.kind = o.reg < 0 ? Operand::kName : Operand::kRegister;
    o.name = word;
    if (in_.take('|')) o.second = find(in_.word());
    return o;
  }

  uint64_t number(std::string_view word) {
    const bool real = word.size() > 2 && word[0] == '0' &&
                      std::string_view("fFdD").find(word[1]) != std::string_view::npos;
    if (real) return std::strtoull(std::string(word.substr(2)).c_str(), nullptr, 16);
    return std::strtoull(std::string(word).c_str(), nullptr, 0);
  }

  int lookup(std::string_view name) {
    size_t digits = name.size();
    while (digits > 0 && std::isdigit(static_cast<unsigned char>(name[digits - 1]))) --digits;
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      if (auto it = scope->single.find(name); it != scope->single.end()) return it->second;
      if (digits == name.size()) continue;
      if (auto it = scope->numbered.find(name.substr(0, digits)); it != scope->numbered.end())
        return it->second + std::atoi(std::string(name.substr(digits)).c_str());
    }
    if (name[0] != '%') return -1;
    // A special register is one that is set before the first statement.
    Register r;
    r.special = name;
    if (name == "%clock64" || name == "%globaltimer") r.width = 64;
    scopes_.front().single[name] = int(text_.registers.size());
    text_.registers.push_back(r);
    return int(text_.registers.size()) - 1;
  }
  int find(std::string_view name) {
    const int found = lookup(name);
    if (found < 0) in_.stop("register '" + std::string(name) + "' is not known");
    return found;
  }

  struct Scope {
    std::unordered_map<std::string_view, int> single, numbered;
  };
  Reader in_;
  Text text_;
  std::vector<Scope> scopes_;
};

}  // namespace

// Reads the text's outermost level: whole functions are passed over.
Module find_entries(std::string_view text) {
  Module m;
  m.text = text;
  Reader in(text, 0, 1);
  while (!in.ended()) {
    const size_t begin = in.at();
    const std::string_view word = in.word();
    if (word == ".entry") {
      const size_t at = in.at();
      m.entries[std::string(in.word())] = at;
      in.skip_to('{');
      in.skip_block();
    } else if (word == ".func") {
      fault("functions that are not inlined are not known to this emulator");
    } else if (word == ".shared") {
      std::string_view name;
      const Variable v = variable(in, name);
      m.shared[std::string(name)] = v;
      in.want(';');
    } else if (word == ".global" || word == ".const") {
      const size_t end = text.find(';', begin);
      Reader inside(text, in.at(), 1);
      std::string_view name;
      variable(inside, name);
      m.globals[std::string(name)] = text.substr(begin, end - begin);
      in = Reader(text, end + 1, 1);
    } else if (word == ".version" || word == ".target" || word == ".address_size") {
      in.word();
      while (in.take(',')) in.word();
    } else if (word == ".extern" || word == ".visible" || word == ".weak") {
      continue;
    } else if (word == ".file" || word == ".section") {
      in = Reader(text, text.find('\n', in.at()), 1);
    } else {
      in.stop("'" + std::string(word) + "' is not known");
    }
  }
  return m;
}

Text parse_entry(const Module& module, std::string_view name) {
  const auto found = module.entries.find(name);
  if (found == module.entries.end()) fault("no kernel " + std::string(name) + " in its module");
  const size_t at = found->second;
  const auto line =
      uint32_t(1 + std::count(module.text.begin(), module.text.begin() + long(at), '\n'));
  Text text = Entry(name, Reader(module.text, at, line)).parse();
  // Shared variables of the module: those of no size are all the dynamic part, behind the others.
  for (const auto& [variable, v] : module.shared) {
    text.shared_align = std::max(text.shared_align, v.align);
    if (v.size == 0) continue;
    Variable mine = v;
    place(mine, text.shared_bytes);
    text.shared[variable] = mine;
  }
  text.shared_bytes =
      (text.shared_bytes + text.shared_align - 1) / text.shared_align * text.shared_align;
  for (const auto& [variable, v] : module.shared)
    if (v.size == 0) text.shared[variable] = {text.shared_bytes, 0, v.align};
  return text;
}

}  // namespace lrnn::emulator
