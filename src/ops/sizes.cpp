#include "ops/sizes.h"

#include <cstring>
#include <sstream>

#include "base/error.h"
#include "ops/inner.h"

namespace lrnn::ops {
namespace {

// Where nothing is, there is no recurrence. Batches and sequences may be empty.
constexpr const char* kNeverEmpty = "NKVDW";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string needed_names(c10::ArrayRef<Slot> inputs) {
  std::vector<std::string> names;
  for (const auto& slot : inputs)
    if (slot.field.need <= Need::kNeeded) names.emplace_back(slot.field.name);
  std::string out;
  for (size_t i = 0; i < names.size(); ++i)
    out += (i == 0 ? "" : i + 1 < names.size() ? ", " : " and ") + names[i];
  return out;
}

bool is_one_of(const torch::Tensor& x, std::initializer_list<torch::Dtype> types) {
  return std::find(types.begin(), types.end(), x.scalar_type()) != types.end();
}

}  // namespace

std::string show(c10::SymIntArrayRef sizes) {
  std::ostringstream out;
  out << '[';
  for (size_t i = 0; i < sizes.size(); ++i) out << (i ? ", " : "") << sizes[i];
  out << ']';
  return out.str();
}

const Slot& main_slot(c10::ArrayRef<Slot> inputs) {
  for (const auto& slot : inputs)
    if (slot.field.need == Need::kMain) return slot;
  throw Error("an op without a main input");
}

SizesByLetter::SizesByLetter(const char* op, c10::ArrayRef<Slot> inputs) : op_(op) {
  for (const auto& slot : inputs)
    if (slot.field.need <= Need::kNeeded && !slot.x->defined())
      throw Error(cat("[", op, "] ", needed_names(inputs), " are needed"));
  bind(main_slot(inputs));
  for (const auto& slot : inputs)
    if (slot.field.need == Need::kNeeded) bind(slot);
  of('S') = of('B'), known('S') = known('B');
  for (const auto& slot : inputs) {
    if (slot.field.kind != Kind::kIndex || !slot.x->defined()) continue;
    const auto& cu = *slot.x;
    check(cu.dim() == 1 && cu.sym_size(0) >= 1, "[", op, "] cu_seqlens must be [S+1], got ",
          show(cu.sym_sizes()));
    const auto& first = main_slot(inputs);
    check(of('B') == 1, "[", op, "] cu_seqlens needs B = 1, got ", first.field.name, " ",
          show(first.x->sym_sizes()));
    of('S') = cu.sym_size(0) - 1, packed_ = true;
  }
  for (const auto& slot : inputs)
    if (slot.field.need > Need::kNeeded && slot.field.kind != Kind::kIndex) require(slot);
}

void SizesByLetter::bind(const Slot& slot) {
  const char* const shape = slot.field.shape;
  const auto sizes = slot.x->sym_sizes();
  const size_t n = std::strlen(shape);
  if (shape[0] == '*') {  // what is not the last letters
    check(sizes.size() + 1 >= n, "[", op_, "] ", slot.field.name, " must have at least ",
          n - 1 == 1 ? std::string("one dimension") : cat(n - 1, " dimensions"));
    if (slot.field.need == Need::kMain) leading_ = sizes.slice(0, sizes.size() - (n - 1)).vec();
    for (size_t i = 1; i < n; ++i)
      if (!known(shape[i])) set(shape[i], sizes[sizes.size() - n + i]);
    return require(slot);
  }
  bool fresh = false;
  for (size_t i = 0; i < n; ++i) fresh |= !is_digit(shape[i]) && !known(shape[i]);
  if (fresh) {
    check(sizes.size() == n, "[", op_, "] ", slot.field.name, " must have ", n, " dimensions ",
          letters(shape), ", got ", show(sizes));
    for (size_t i = 0; i < n; ++i) {
      if (is_digit(shape[i]) || known(shape[i])) continue;
      set(shape[i], sizes[i]);
      check(!std::strchr(kNeverEmpty, shape[i]) || sizes[i] >= 1, "[", op_, "] ", shape[i],
            " must be at least 1, got ", slot.field.name, " ", show(sizes));
    }
  }
  require(slot);
}

void SizesByLetter::require(const Slot& slot) const {
  if (!slot.x->defined()) return;
  const auto want = sizes(slot.field.shape);
  if (slot.x->sym_sizes() == c10::SymIntArrayRef(want)) return;
  throw Error(cat("[", op_, "] ", slot.field.name, " must be ", show(want), " = ",
                  letters(slot.field.shape), ", got ", show(slot.x->sym_sizes())));
}

std::vector<c10::SymInt> SizesByLetter::sizes(const char* shape) const {
  std::vector<c10::SymInt> out;
  for (; *shape; ++shape) {
    if (*shape == '*')
      out.insert(out.end(), leading_.begin(), leading_.end());
    else
      out.push_back(is_digit(*shape) ? c10::SymInt(*shape - '0') : of_[size_t(*shape)]);
  }
  return out;
}

std::string SizesByLetter::letters(const char* shape) const {
  std::string out = "[";
  for (; *shape; ++shape) {
    if (out.size() > 1) out += ",";
    out += *shape == '*' ? std::string("..")
                         : std::string(1, *shape == 'S' && !packed_ ? 'B' : *shape);
  }
  return out + "]";
}

void check_types(const char* op, c10::ArrayRef<Slot> inputs) {
  const auto& [first, main] = main_slot(inputs);
  const auto refuse = [&](const Slot& slot, const std::string& why) {
    throw Error(cat("[", op, "] ", slot.field.name, " is ", slot.x->scalar_type(), ", but ", why));
  };
  if (!is_one_of(*main, {at::kFloat, at::kDouble, at::kBFloat16}))
    refuse(main_slot(inputs), "it must be float32, float64 or bfloat16");
  const auto type = main->scalar_type(), wide = wide_type(*main);
  for (const auto& slot : inputs) {
    if (!slot.x->defined()) continue;
    switch (slot.field.kind) {
      case Kind::kIo:
        if (slot.x->scalar_type() != type)
          refuse(slot, cat("it must have the dtype of ", first.name));
        break;
      case Kind::kIoOrWide:
        if (!is_one_of(*slot.x, {type, wide}))
          refuse(slot,
                 cat("it must have the dtype of ", first.name, ", or float32 beside bfloat16"));
        break;
      case Kind::kWide:
        if (slot.x->scalar_type() != wide)
          refuse(slot, "it must be float32 (float64 for float64 inputs)");
        break;
      case Kind::kIndex:
        if (slot.x->scalar_type() != at::kLong) refuse(slot, "it must be int64");
        continue;  // its bounds may lie on the CPU
    }
    check(slot.x->device() == main->device(), "[", op, "] ", first.name, " is on ",
          main->device().str(), " and another input on ", slot.x->device().str());
  }
}

}  // namespace lrnn::ops
