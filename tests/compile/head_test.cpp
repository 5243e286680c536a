#include "compile/plan/head.h"

#include <gtest/gtest.h>

#include <cmath>

#include "automata/algebra/group.h"
#include "base/random.h"
#include "compile/plan/representation.h"

namespace lrnn::compile {
namespace {

std::vector<GroupPlan> plans_of(const std::string& name, std::vector<int64_t> letters = {}) {
  const automata::Group group(name);
  const auto a = automata::right_multiplication(group, std::move(letters));
  std::vector<Permutation> moves;
  for (int64_t x = 0; x < a.symbols; ++x) moves.push_back(a.letter(x));
  return group_plans(a.states, moves, a.states, moves);
}

std::vector<int64_t> swaps(const std::string& name) {
  const automata::Group group(name);
  std::vector<int64_t> out;
  for (int64_t g = 0; g < group.order(); ++g)
    if (group.element(g).size() == 4) out.push_back(g);  // "(12)"
  return out;
}

// "exact 3, drift 2": what each plan needs.
std::string needs(const std::vector<GroupPlan>& plans) {
  std::string out;
  for (const auto& p : plans)
    out += (out.empty() ? "" : ", ") +
           std::string(p.exactness == Exactness::kExact ? "exact " : "drift ") +
           std::to_string(p.householders);
  return out;
}

TEST(Heads, FindTheFewestHouseholders) {
  EXPECT_EQ(needs(plans_of("S3")), "exact 2");
  EXPECT_EQ(needs(plans_of("S4")), "exact 3, drift 2");
  EXPECT_EQ(needs(plans_of("A4")), "exact 2");
  EXPECT_EQ(needs(plans_of("A5")), "exact 4, drift 2");
  EXPECT_EQ(needs(plans_of("S5")), "exact 4");
  EXPECT_EQ(needs(plans_of("Z2")), "exact 1");
  EXPECT_EQ(needs(plans_of("Z3")), "exact 2");
  EXPECT_EQ(needs(plans_of("Z4")), "exact 3, drift 2");
  EXPECT_EQ(needs(plans_of("Z5")), "exact 4, drift 2");
  EXPECT_EQ(needs(plans_of("Z6")), "exact 2");
  EXPECT_EQ(needs(plans_of("Z7")), "exact 6, drift 2");
  EXPECT_EQ(needs(plans_of("Z8")), "exact 5, drift 2");
  EXPECT_EQ(needs(plans_of("Z60")), "exact 4, drift 2");
  EXPECT_EQ(needs(plans_of("D4")), "exact 3, drift 2");
  EXPECT_EQ(needs(plans_of("D5")), "exact 4, drift 2");
  EXPECT_EQ(needs(plans_of("Z2_x_Z2_x_Z2")), "exact 1");
  EXPECT_EQ(needs(plans_of("S3", swaps("S3"))), "exact 1");
  EXPECT_EQ(needs(plans_of("S4", swaps("S4"))), "exact 1");
  EXPECT_EQ(needs(plans_of("S5", swaps("S5"))), "exact 1");
  EXPECT_EQ(needs(plans_of("S6", automata::Group("S6").generators())), "exact 3");
}

// Householders of a letter multiplied out are its matrix; bitwise in float32 for exact heads, where
// the state is stored twice.
void multiply_out(const GroupPlan& plan) {
  for (const auto& head : plan.heads)
    for (const int64_t g : plan.letters) {
      const auto n = static_cast<size_t>(head.dim), rows = n * static_cast<size_t>(head.copies);
      std::vector<float> state(rows * n, 0);
      for (size_t i = 0; i < rows; ++i) state[i * n + i % n] = 1;
      for (const auto& step : head.steps[static_cast<size_t>(g)]) {
        const auto k = key_of(step, head.copies);
        for (size_t c = 0; c < n; ++c) {
          float s = 0;
          for (size_t i = 0; i < rows; ++i) s += static_cast<float>(k[i]) * state[i * n + c];
          for (size_t i = 0; i < rows; ++i) state[i * n + c] -= 2 * s * static_cast<float>(k[i]);
        }
      }
      const auto& m = head.matrices[static_cast<size_t>(head.coset[static_cast<size_t>(g)])];
      for (size_t i = 0; i < rows * n; ++i) {
        const double want = m[(i / n) % n * n + i % n];
        if (head.exactness == Exactness::kExact)
          ASSERT_EQ(state[i], want);
        else
          ASSERT_NEAR(state[i], want, 1e-6);
      }
    }
}

TEST(Heads, HouseholdersMultiplyOutToTheMatrices) {
  for (const char* name : {"S3", "S4", "A5", "S5", "Z8", "Z60", "D5", "A4_x_Z5", "D4"})
    for (const auto& plan : plans_of(name)) multiply_out(plan);
}

TEST(Heads, CosetsFollowTheGroupAndDecode) {
  for (const char* name : {"S4", "A5", "Z60", "D6", "Z2_x_Z2", "Z4_x_Z2"})
    for (const auto& plan : plans_of(name)) {
      Random random(4, 0, 0);
      int64_t g = 0;
      for (int i = 0; i < 200; ++i) {
        const int64_t letter = plan.letters[random.below(plan.letters.size())];
        std::vector<int64_t> cosets;
        for (const auto& head : plan.heads) {
          // Matrices multiply like elements.
          const auto n = static_cast<size_t>(head.dim);
          const auto to = plan.group.product(g, letter);
          const auto at = [&](int64_t e) -> const std::vector<double>& {
            return head.matrices[static_cast<size_t>(head.coset[static_cast<size_t>(e)])];
          };
          for (size_t r = 0; r < n; ++r)
            for (size_t c = 0; c < n; ++c) {
              double s = 0;
              for (size_t k = 0; k < n; ++k) s += at(letter)[r * n + k] * at(g)[k * n + c];
              ASSERT_NEAR(s, at(to)[r * n + c], 1e-9) << name;
            }
          cosets.push_back(head.coset[static_cast<size_t>(to)]);
        }
        g = plan.group.product(g, letter);
        ASSERT_EQ(plan.decode(cosets), g) << name;
      }
    }
}

TEST(Heads, DriftingOnesSayHowLongTheyLast) {
  const auto a5 = plans_of("A5");
  ASSERT_EQ(a5.size(), 2u);
  EXPECT_TRUE(std::isinf(a5[0].t_safe));
  EXPECT_NEAR(a5[1].heads[0].margin, std::acos(-1) / 5, 1e-6);  // half of 72 degrees
  EXPECT_GT(a5[1].t_safe, 1e7);
  EXPECT_LT(a5[1].t_safe, 1e9);
}

}  // namespace
}  // namespace lrnn::compile
