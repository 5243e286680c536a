#include "tests/compile/suite.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "compile/certificate.h"

// Every automaton of the suite through the real model. LRNN_SUITE_TOKENS sets how long the longest
// word of each is.
namespace lrnn::compile {
namespace {

int64_t suite_tokens() {
  const char* text = std::getenv("LRNN_SUITE_TOKENS");
  return text ? int64_t(std::atof(text)) : 2000;
}

class Suite : public testing::TestWithParam<automata::Example> {};

TEST_P(Suite, IsCertifiedAndFollowed) {
  const auto c = compile(example(GetParam().name), {});
  EXPECT_EQ(c->exactness, Exactness::kExact);
  EXPECT_EQ(int64_t(c->built->network.layers.size()), c->plan.layers);
  EXPECT_EQ(c->built->network.householders(), c->plan.householders);
  const auto certificate = certify(*c, *model_of(c->weights));
  EXPECT_EQ(certificate.first_wrong(), "");
  EXPECT_GT(certificate.margin.weight, 1e-4) << certificate.margin.limit;
  const auto r = run(*c, suite_tokens());
  EXPECT_EQ(r.wrong, 0) << (r.first ? cat(r.first->word, " at ", r.first->position) : "");
}

INSTANTIATE_TEST_SUITE_P(Automata, Suite, testing::ValuesIn(automata::examples()),
                         [](const auto& info) { return info.param.name; });

TEST(Profiles, AllFollow) {
  for (const auto profile :
       {Profile::kNative, Profile::kNativeBos, Profile::kFla, Profile::kFp64}) {
    Options options;
    options.profile = profile;
    for (const char* name : {"tomita3", "tomita5"})
      EXPECT_EQ(run(*compile(example(name), options), 1000).wrong, 0)
          << name << " " << name_of(profile);
  }
}

TEST(Profiles, AGateThatStaysOpenChangesNothing) {
  Options options;
  options.gate = true;
  EXPECT_EQ(run(*compile(group("S3"), options), 1000).wrong, 0);
}

TEST(Limits, AreKeptOrRefused) {
  Options options;
  options.limits.householders = 1;
  EXPECT_EQ(compile(group("S5", "swaps"), options)->built->network.householders(), 1);
  EXPECT_THROW(compile(group("S3"), options), Error);
  options.limits.drift = true;
  options.limits.householders = 2;
  const auto a5 = compile(group("A5"), options);
  EXPECT_EQ(a5->plan.layers, 1);
  EXPECT_EQ(a5->exactness, Exactness::kDrift);
  EXPECT_EQ(run(*a5, 2000).wrong, 0);
}

TEST(Certificate, SeesAnyBrokenPart) {
  const auto c = compile(example("tomita3"), {});
  const auto sound = model_of(c->weights);
  ASSERT_TRUE(certify(*c, *sound).holds());
  for (const char* name : {"k_proj", "b_proj", "v_proj", "gate_proj", "down_proj"}) {
    const auto model = model_of(c->weights);
    for (auto& item : model->named_parameters()) {
      if (item.key().find(name) == std::string::npos) continue;
      torch::NoGradGuard no_grad;
      // A row that reads nothing but the constant may belong to a head that does nothing.
      const auto size = item.value().abs();
      const auto reads = (size.slice(1, 1).amax(-1, true) > 0).to(size.scalar_type());
      if (reads.sum().item<double>() == 0) continue;
      const auto at = (size + reads * size.max()).argmax().item<int64_t>();
      item.value().view(-1)[at] *= -1;  // half a key is the same key: it is normalised
      break;
    }
    const bool caught = !certify(*c, *model).holds() ||
                        long_run(*model, c->subject.automaton, tokens_of(*c), {2000, 1}).wrong > 0;
    EXPECT_TRUE(caught) << name;
  }
}

}  // namespace
}  // namespace lrnn::compile
