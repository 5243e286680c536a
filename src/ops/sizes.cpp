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
  const Slot& main = main_slot(inputs);
  bind(main);
  for (const auto& slot : inputs)
    if (slot.field.need == Need::kNeeded) bind(slot);
  for (const auto& slot : inputs) {
    // Bounds of sequences have no shape of letters; an index with one is bound like any input.
    if (slot.field.kind != Kind::kIndex || *slot.field.shape || !slot.x->defined()) continue;
    const auto& cu = *slot.x;
    if (cu.dim() != 1 || cu.sym_size(0) < 1)
      throw Error(cat("[", op, "] cu_seqlens must be [S+1], got ", show(cu.sym_sizes())));
    if ((*this)['B'] != 1)
      throw Error(cat("[", op, "] cu_seqlens needs B = 1, got ", main.field.name, " ",
                      show(main.x->sym_sizes())));
    set('S', cu.sym_size(0) - 1), packed_ = true;
  }
  if (const auto* batch = find('B'); batch && !packed_) set('S', *batch);
  for (const auto& slot : inputs)
    if (slot.field.need > Need::kNeeded && slot.field.kind != Kind::kIndex) require(slot);
}

const c10::SymInt* SizesByLetter::find(char letter) const {
  for (const auto& [name, size] : known_)
    if (name == letter) return &size;
  return nullptr;
}

// Sentences are made where they are thrown: a tiny model would notice them on every call.
void SizesByLetter::bind(const Slot& slot) {
  const char* const shape = slot.field.shape;
  const auto sizes = slot.x->sym_sizes();
  const size_t n = std::strlen(shape);
  const auto refuse = [&](const auto&... why) { throw Error(cat("[", op_, "] ", why...)); };
  if (shape[0] == '*') {  // what is not the last letters
    if (sizes.size() + 1 < n)
      refuse(slot.field.name, " must have at least ",
             n == 2 ? std::string("one dimension") : cat(n - 1, " dimensions"));
    if (slot.field.need == Need::kMain)
      leading_.assign(sizes.begin(), sizes.end() - int64_t(n - 1));
    for (size_t i = 1; i < n; ++i)
      if (!find(shape[i])) set(shape[i], sizes[sizes.size() - n + i]);
    return require(slot);
  }
  bool fresh = false;
  for (size_t i = 0; i < n; ++i) fresh |= !is_digit(shape[i]) && !find(shape[i]);
  if (fresh && sizes.size() != n)
    refuse(slot.field.name, " must have ", n, " dimensions ", letters(shape), ", got ",
           show(sizes));
  for (size_t i = 0; i < n && fresh; ++i) {
    if (is_digit(shape[i]) || find(shape[i])) continue;
    set(shape[i], sizes[i]);
    if (std::strchr(kNeverEmpty, shape[i]) && sizes[i] < 1)
      refuse(shape[i], " must be at least 1, got ", slot.field.name, " ", show(sizes));
  }
  require(slot);
}

bool SizesByLetter::fits(const Slot& slot) const {
  const char* shape = slot.field.shape;
  auto sizes = slot.x->sym_sizes();
  if (*shape == '*') {
    if (sizes.size() < leading_.size() ||
        sizes.slice(0, leading_.size()) != c10::SymIntArrayRef(leading_))
      return false;
    sizes = sizes.slice(leading_.size()), ++shape;
  }
  for (const auto& size : sizes) {
    if (*shape == '(') ++shape;  // the dimension that may be missing is there
    if (!*shape || (is_digit(*shape) ? size != *shape - '0' : size != (*this)[*shape]))
      return false;
    if (*++shape == ')') ++shape;
  }
  return !*shape || *shape == '(';
}

void SizesByLetter::require(const Slot& slot) const {
  if (!slot.x->defined() || fits(slot)) return;
  const auto one = [&](const std::string& shape) {
    return cat(show(sizes(shape.c_str())), " = ", letters(shape.c_str()));
  };
  const std::string shape = slot.field.shape;
  const auto open = shape.find('(');
  std::string want = one(shape.substr(0, open));
  if (open != std::string::npos) want += " or " + one(shape.substr(0, open) + shape[open + 1]);
  throw Error(
      cat("[", op_, "] ", slot.field.name, " must be ", want, ", got ", show(slot.x->sym_sizes())));
}

std::vector<c10::SymInt> SizesByLetter::sizes(const char* shape) const {
  std::vector<c10::SymInt> out;
  for (; *shape; ++shape) {
    if (*shape == '*')
      out.insert(out.end(), leading_.begin(), leading_.end());
    else
      out.push_back(is_digit(*shape) ? c10::SymInt(*shape - '0') : (*this)[*shape]);
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
    refuse(main_slot(inputs), "it must be float32, float64, bfloat16 or float16");
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
      case Kind::kCast: break;
      case Kind::kIndex:
        if (!is_one_of(*slot.x, {at::kLong, at::kInt})) refuse(slot, "it must be int64 or int32");
        continue;  // its bounds may lie on the CPU
    }
    if (slot.x->device() != main->device())
      throw Error(cat("[", op, "] ", first.name, " is on ", main->device().str(),
                      " and another input on ", slot.x->device().str()));
  }
}

namespace {

// What laid_out() asks for.
std::vector<c10::SymInt> strides_of(const Field& field, c10::SymIntArrayRef sizes) {
  std::vector<c10::SymInt> out(sizes.size());
  c10::SymInt next = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    const auto at = size_t(std::strchr(field.shape, field.memory[i]) - field.shape);
    out[at] = next, next = next * sizes[at];
  }
  return out;
}

}  // namespace

torch::Tensor empty_as(const Field& field, c10::SymIntArrayRef sizes,
                       const torch::TensorOptions& options) {
  if (!field.memory) return at::empty_symint(sizes, options);
  return at::empty_strided_symint(sizes, strides_of(field, sizes), options);
}

torch::Tensor laid_out_as(const Field& field, const torch::Tensor& x) {
  const auto sizes = x.sym_sizes(), strides = x.sym_strides();
  const auto want = strides_of(field, sizes);
  bool already = true;
  for (size_t i = 0; i < sizes.size(); ++i) already &= sizes[i] == 1 || strides[i] == want[i];
  return already ? x : empty_as(field, sizes, x.options()).copy_(x);
}

}  // namespace lrnn::ops
