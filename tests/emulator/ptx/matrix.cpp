#include "tests/emulator/ptx/decode.h"

// Tensor cores: fragments of matrices to and from shared memory, and products. An instruction's
// sums are made in double and rounded once: the hardware's are at least as far from exact.
namespace lrnn::emulator {
namespace {

float wide(uint32_t bits16) { return std::bit_cast<float>(bits16 << 16); }
float low(uint32_t x) { return wide(x & 0xffff); }
float high(uint32_t x) { return std::bit_cast<float>(x & 0xffff0000u); }

// Lane 8 m + r points at row r of matrix m; lane l gets (or gives) two neighbours of row l / 4.
template <bool kLoads, bool kTransposed> void matrices(Warp& w, const Instruction& i) {
  if (!w.together(kAll)) return;
  const uint32_t* const names = w.function->lists.data() + i.list;
  for (uint32_t m = 0; m < i.count; ++m) {
    unsigned char* rows[8];
    for (uint32_t r = 0; r < 8; ++r) {
      w.exec = 1u << (8 * m + r);  // so that a fault names the lane
      rows[r] = w.shared(uint64_t(w.at(i.a)[8 * m + r]) + uint64_t(i.number), 16);
    }
    if (w.races())
      for (const unsigned char* row : rows)
        w.races()->touch(w, row, 16, kLoads ? Races::kRead : Races::kWrite);
    auto* const x = w.at(names[m]);
    for (int l = 0; l < kLanes; ++l) {
      const int row = l / 4, column = l % 4 * 2;
      for (int half = 0; half < 2; ++half) {
        unsigned char* const at =
            kTransposed ? rows[column + half] + 2 * row : rows[row] + 2 * (column + half);
        uint16_t value;
        if (kLoads) {
          std::memcpy(&value, at, 2);
          x[l] = half ? (x[l] & 0xffffu) | uint32_t(value) << 16 : value;
        } else {
          value = uint16_t(x[l] >> (16 * half));
          std::memcpy(at, &value, 2);
        }
      }
    }
  }
  if (!kLoads) ++w.block->events;
}
void transpose(Warp& w, const Instruction& i) {  // movmatrix
  if (!w.together(kAll)) return;
  uint16_t m[8][8];
  const auto* const a = w.at(i.a);
  auto* const d = w.at(i.d);
  for (int l = 0; l < kLanes; ++l)
    m[l / 4][l % 4 * 2] = uint16_t(a[l]), m[l / 4][l % 4 * 2 + 1] = uint16_t(a[l] >> 16);
  for (int l = 0; l < kLanes; ++l)
    d[l] = m[l % 4 * 2][l / 4] | uint32_t(m[l % 4 * 2 + 1][l / 4]) << 16;
}

// A [16,16] of four registers, as the manual draws fragments.
void read_A(Warp& w, const uint32_t* names, float (&A)[16][16]) {
  for (int r = 0; r < 4; ++r) {
    const auto* const x = w.at(names[r]);
    for (int l = 0; l < kLanes; ++l) {
      const int row = l / 4 + r % 2 * 8, column = l % 4 * 2 + r / 2 * 8;
      A[row][column] = low(x[l]), A[row][column + 1] = high(x[l]);
    }
  }
}
// C += A B for N columns of B [16][N].
template <int kColumns> void add_product(const float (&A)[16][16], const float* B, float* C) {
  for (int row = 0; row < 16; ++row) {
    double sum[kColumns];
    for (int n = 0; n < kColumns; ++n) sum[n] = double(C[row * kColumns + n]);
    for (int k = 0; k < 16; ++k) {
      const auto a = double(A[row][k]);
      LRNN_EACH_APART
      for (int n = 0; n < kColumns; ++n) sum[n] += a * double(B[k * kColumns + n]);
    }
    for (int n = 0; n < kColumns; ++n) C[row * kColumns + n] = float(sum[n]);
  }
}

// mma.m16n8k16: d, a, b, c.
void product(Warp& w, const Instruction& i) {
  if (!w.together(kAll)) return;
  const uint32_t* const names = w.function->lists.data() + i.list;
  const uint32_t *const d = names, *const b = names + 8, *const c = names + 10;
  float A[16][16], B[16 * 8], C[16 * 8];
  read_A(w, names + 4, A);
  for (int r = 0; r < 2; ++r) {
    const auto* const x = w.at(b[r]);
    for (int l = 0; l < kLanes; ++l) {
      const int k = l % 4 * 2 + r * 8, n = l / 4;
      B[k * 8 + n] = low(x[l]), B[(k + 1) * 8 + n] = high(x[l]);
    }
  }
  for (int r = 0; r < 4; ++r) {
    const auto* const x = w.at<float>(c[r]);
    for (int l = 0; l < kLanes; ++l) C[(l / 4 + r / 2 * 8) * 8 + l % 4 * 2 + r % 2] = x[l];
  }
  add_product<8>(A, B, C);
  for (int r = 0; r < 4; ++r) {
    auto* const x = w.at<float>(d[r]);
    for (int l = 0; l < kLanes; ++l) x[l] = C[(l / 4 + r / 2 * 8) * 8 + l % 4 * 2 + r % 2];
  }
}

// ------------------------------------------------------------------------------- warp groups
// An operand in shared memory, of tiles 128 bytes wide whose 16-byte pieces are exchanged: piece p
// of row r lies at p ^ (r % 8).
struct Described {
  uint64_t begin, wide, eight;  // bytes to the next 64 values across, to the next eight rows
  explicit Described(Warp& w, uint64_t x)
      : begin((x & 0x3fff) << 4), wide((x >> 16 & 0x3fff) << 4), eight((x >> 32 & 0x3fff) << 4) {
    if (x >> 62 != 1) w.stop("only operands of 128 swizzled bytes are known");
    if (x >> 49 & 7) w.stop("a tile that does not lie on 1024 bytes");
  }
  // Row `outer` and k of an operand whose values of one row lie along k ...
  uint64_t along_k(int outer, int k) const {
    return swizzled(begin + uint64_t(outer / 8) * eight + uint64_t(outer % 8) * 128 +
                    uint64_t(k) * 2);
  }
  // ... or whose rows are k.
  uint64_t across_k(int outer, int k) const {
    return swizzled(begin + uint64_t(outer / 64) * wide + uint64_t(k / 8) * eight +
                    uint64_t(k % 8) * 128 + uint64_t(outer % 64) * 2);
  }
  static uint64_t swizzled(uint64_t at) { return at ^ ((at >> 7 & 7) << 4); }
};
float value_at(Warp& w, uint64_t address) {
  const unsigned char* const at = w.shared(address, 2);
  if (w.races()) w.races()->read_by_products(w, at, 2);
  uint16_t bits;
  std::memcpy(&bits, at, 2);
  return wide(bits);
}

// d [64,N], a (four registers or a description), b (a description), whether d is added to, and
// whether rows of a and b are k. A warp has 16 of the 64 rows; the others' are made in their turn,
// since nobody may touch the operands before the products are waited for.
template <int kColumns> void group_product(Warp& w, const Instruction& i) {
  if (!w.together(kAll)) return;
  const uint32_t* const names = w.function->lists.data() + i.list;
  const bool in_registers = i.number & 1, a_rows_are_k = i.number & 2, b_rows_are_k = i.number & 4;
  const bool negate = i.number & ~int64_t(7);
  if (negate) w.stop("products with a minus are not known");
  constexpr int kNames = kColumns / 2;
  float A[16][16], B[16 * kColumns], C[16 * kColumns];
  if (in_registers) {
    read_A(w, names + kNames, A);
  } else {
    const Described a(w, w.at<uint64_t>(i.a)[0]);
    const int first = w.index % 4 * 16;
    for (int row = 0; row < 16; ++row)
      for (int k = 0; k < 16; ++k)
        A[row][k] =
            value_at(w, a_rows_are_k ? a.across_k(first + row, k) : a.along_k(first + row, k));
  }
  const Described b(w, w.at<uint64_t>(i.b)[0]);
  for (int k = 0; k < 16; ++k)
    for (int n = 0; n < kColumns; ++n)
      B[k * kColumns + n] = value_at(w, b_rows_are_k ? b.across_k(n, k) : b.along_k(n, k));
  const bool adds = w.predicate(i.c) & 1;
  const auto place = [](int r, int l) {
    return (l / 4 + r % 4 / 2 * 8) * kColumns + r / 4 * 8 + l % 4 * 2 + r % 2;
  };
  for (int r = 0; r < kNames; ++r) {
    const auto* const x = w.at<float>(names[r]);
    for (int l = 0; l < kLanes; ++l) C[place(r, l)] = adds ? x[l] : 0.f;
  }
  add_product<kColumns>(A, B, C);
  for (int r = 0; r < kNames; ++r) {
    auto* const x = w.at<float>(names[r]);
    for (int l = 0; l < kLanes; ++l) x[l] = C[place(r, l)];
  }
}
void group_fence(Warp& w, const Instruction&) { w.together(kAll); }
void group_commit(Warp& w, const Instruction&) {
  if (w.together(kAll) && w.races()) w.races()->close_products(w);
}
void group_wait(Warp& w, const Instruction& i) {
  if (w.together(kAll) && w.races()) w.races()->wait_products(w, size_t(i.number));
}

bool decode_group(Decoding& d, Instruction& i) {
  if (d.has("fence")) return i.run = group_fence, true;
  if (d.has("commit_group")) return i.run = group_commit, true;
  if (d.has("wait_group")) {
    i.run = group_wait, i.number = int64_t(d.number(0));
    return true;
  }
  if (!d.has("mma_async")) return false;
  if (!d.opcode_ends("f32.bf16.bf16")) return false;
  const std::string shape(d.parts[4]);
  if (shape == "m64n32k16")
    i.run = group_product<32>;
  else if (shape == "m64n64k16")
    i.run = group_product<64>;
  else if (shape == "m64n128k16")
    i.run = group_product<128>;
  else
    return false;
  const bool in_registers = d.operand(1).kind == Operand::kList;
  i.list = d.list(d.operand(0).items, 32), i.count = uint32_t(d.operand(0).items.size());
  if (in_registers)
    d.list(d.operand(1).items, 32);
  else
    i.a = d.place(1, 64);
  i.b = d.place(2, 64);
  // "scale-d" is a number here: 1 adds to what is there.
  i.c = d.operand(3).kind == Operand::kNumber ? d.constant(d.number(3), 1) : d.place(3, 1);
  if (d.number(4) != 1 || d.number(5) != 1) return false;
  const bool a_rows_are_k = !in_registers && d.number(6),
             b_rows_are_k = d.number(in_registers ? 6 : 7);
  i.number = in_registers | a_rows_are_k << 1 | b_rows_are_k << 2;
  return true;
}

}  // namespace

bool decode_matrix(Decoding& d, Instruction& i) {
  if (d.is("wgmma")) return decode_group(d, i);
  if (d.is("ldmatrix") || d.is("stmatrix")) {
    if (!d.has("m8n8") || !d.has("b16")) return false;
    const bool loads = d.is("ldmatrix"), transposed = d.has("trans");
    i.run = loads ? (transposed ? matrices<true, true> : matrices<true, false>)
                  : (transposed ? matrices<false, true> : matrices<false, false>);
    const auto& items = d.operand(loads ? 0 : 1).items;
    i.list = d.list(items, 32), i.count = uint32_t(items.size());
    if (d.address(d.operand(loads ? 1 : 0), i.a, i.number)) return false;
    return true;
  }
  if (d.is("movmatrix")) {
    i.run = transpose, i.d = d.place(0, 32), i.a = d.place(1, 32);
    return true;
  }
  if (d.is("mma")) {
    if (!d.opcode_ends("m16n8k16.row.col.f32.bf16.bf16.f32")) return false;
    i.run = product;
    i.list = d.list(d.operand(0).items, 32);
    for (size_t k = 1; k < 4; ++k) d.list(d.operand(k).items, 32);
    return true;
  }
  return false;
}

}  // namespace lrnn::emulator
