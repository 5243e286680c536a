#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include "base/error.h"
#include "kernels/dispatch.h"

// LRNN_TEST_ISA=avx2 (or baseline, avx512) has a whole test program run with the kernels of a
// lesser machine. For tests alone: the library itself reads no such variable.
namespace lrnn::kernels {
namespace {

[[noreturn]] void skip(const std::string& why) {
  std::cout << "skipped: " << why << "\n";
  std::exit(77);  // for CTest
}

class ForcedIsa : public ::testing::Environment {
  void SetUp() override {
    const char* const wanted = std::getenv("LRNN_TEST_ISA");
    if (!wanted) return;
    for (const Isa isa : kIsas) {
      if (std::string(wanted) != name(isa)) continue;
      if (!has_isa(isa)) skip(cat("this machine cannot run the ", name(isa), " kernels"));
      if (isa == best_isa()) skip("they are this machine's own, and tested without asking");
      return force_isa(isa);
    }
    FAIL() << "LRNN_TEST_ISA names no instruction set: '" << wanted << "'";
  }
};

[[maybe_unused]] const auto* const registered = ::testing::AddGlobalTestEnvironment(new ForcedIsa);

}  // namespace
}  // namespace lrnn::kernels
