#include "tests/emulator/ptx/decode.h"

namespace lrnn::emulator {

Type type_named(std::string_view name) {
  static const std::map<std::string_view, Type> names = {
      {"pred", Type::kPred}, {"b8", Type::kB8},   {"b16", Type::kB16}, {"b32", Type::kB32},
      {"b64", Type::kB64},   {"u8", Type::kU8},   {"u16", Type::kU16}, {"u32", Type::kU32},
      {"u64", Type::kU64},   {"s8", Type::kS8},   {"s16", Type::kS16}, {"s32", Type::kS32},
      {"s64", Type::kS64},   {"f32", Type::kF32}, {"f64", Type::kF64}};
  const auto found = names.find(name);
  return found == names.end() ? Type::kOther : found->second;
}

int bits_of(Type type) {
  switch (type) {
    case Type::kPred: return 1;
    case Type::kB8:
    case Type::kU8:
    case Type::kS8: return 8;
    case Type::kB16:
    case Type::kU16:
    case Type::kS16: return 16;
    case Type::kB64:
    case Type::kU64:
    case Type::kS64:
    case Type::kF64: return 64;
    default: return 32;
  }
}

void Decoding::begin(const Statement& statement) {
  s = &statement;
  parts.clear();
  std::string_view rest = s->opcode;
  for (size_t dot; (dot = rest.find('.')) != std::string_view::npos; rest.remove_prefix(dot + 1))
    parts.push_back(rest.substr(0, dot));
  parts.push_back(rest);
}

void Decoding::stop(const std::string& why) const {
  fault(text.name + "\n  line " + std::to_string(s->line) + " of the PTX: '" +
        std::string(s->opcode) + "': " + why);
}

uint32_t Decoding::constant(uint64_t bits, int width) {
  const bool wide = width == 64;
  const auto [found, is_new] = constants_.try_emplace({bits, wide}, 0);
  if (is_new) {
    found->second = kConstant | uint32_t(function_.constants.size());
    for (int l = 0; l < kLanes; ++l) {
      // A predicate is one word, the lanes its bits.
      function_.constants.push_back(width == 1 ? (bits ? kAll : 0) : uint32_t(bits));
      if (wide) function_.constants.push_back(uint32_t(bits >> 32));
    }
  }
  return found->second;
}

uint32_t Decoding::place(const Operand& o, int width) {
  switch (o.kind) {
    case Operand::kRegister:
      if (o.negated) stop("'!' is not known here");
      if ((this->width(o) == 64) != (width == 64)) stop("a register has another width");
      return places_[size_t(o.reg)];
    case Operand::kNumber: {
      uint64_t bits = o.bits;
      if (width == 64 && o.narrow_float)
        bits = std::bit_cast<uint64_t>(double(std::bit_cast<float>(uint32_t(bits))));
      if (width == 32 && o.wide_float)
        bits = std::bit_cast<uint32_t>(float(std::bit_cast<double>(bits)));
      if (width == 16) bits &= 0xffff;
      if (width < 64) bits &= 0xffffffff;
      return constant(bits, width);
    }
    default: stop("an operand of this kind is not known here");
  }
}

bool Decoding::address(const Operand& o, uint32_t& at, int64_t& added) {
  added = int64_t(o.bits);
  if (o.reg >= 0) {
    at = places_[size_t(o.reg)];
    return width(o) == 64;
  }
  at = constant(0, 64);
  if (o.name.empty()) return true;
  if (const auto found = text.shared.find(o.name); found != text.shared.end()) {
    added += int64_t(kSharedBegin + found->second.offset);
    return true;
  }
  if (const auto found = text.parameters.find(o.name); found != text.parameters.end()) {
    added += int64_t(found->second.offset);
    return true;
  }
  stop("variable '" + std::string(o.name) + "' is not known");
}

uint32_t Decoding::list(const std::vector<Operand>& items, int width) {
  const auto first = uint32_t(function_.lists.size());
  for (const Operand& item : items)
    function_.lists.push_back(item.kind == Operand::kSink ? kNone : place(item, width));
  return first;
}

uint32_t Decoding::raw_list(const std::vector<uint32_t>& numbers) {
  const auto first = uint32_t(function_.lists.size());
  function_.lists.insert(function_.lists.end(), numbers.begin(), numbers.end());
  return first;
}

Function decode(Text& text) {
  Function f;
  f.name = text.name, f.arguments = text.arguments;
  f.shared = text.shared_bytes, f.local = (text.local_bytes + 15) / 16 * 16;
  f.parameters = text.parameter_bytes, f.threads = text.threads;
  std::vector<uint32_t> places;
  f.register_words = place_registers(text, places);
  for (size_t r = 0; r < text.registers.size(); ++r)
    if (const std::string& name = text.registers[r].special;
        !name.empty() && text.registers[r].width == 32)
      f.specials.push_back({index_named(name), places[r]});
  Decoding d(text, places, f);
  static constexpr auto kFamilies = {decode_arithmetic, decode_float,      decode_convert,
                                     decode_move,       decode_load_store, decode_lanes,
                                     decode_control,    decode_matrix,     decode_async};
  for (const Statement& s : text.statements) {
    Instruction i;
    i.line = s.line;
    if (s.guard >= 0) i.guard = places[size_t(s.guard)], i.unless = s.unless;
    d.begin(s);
    const auto knows = [&](auto family) { return family(d, i); };
    if (std::none_of(kFamilies.begin(), kFamilies.end(), knows))
      d.stop("the emulator does not know this opcode");
    f.code.push_back(i);
  }
  return f;
}

}  // namespace lrnn::emulator
