#include "text/sampling/sampler.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <map>

namespace decant::text {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

Sampler make(const SamplingOptions& options, size_t vocabulary) {
  return *Sampler::create(options, vocabulary);
}

// Share of each id over many draws from the same logits.
std::map<int32_t, double> shares(const SamplingOptions& options, std::span<const float> logits,
                                 int draws = 20000) {
  Sampler s = make(options, logits.size());
  std::map<int32_t, double> out;
  for (int i = 0; i < draws; ++i) out[*s.next(logits)] += 1.0 / draws;
  return out;
}

TEST(Random, GivesTheReferenceSequence) {
  // From the authors' C code, state filled by SplitMix64 from 0 and from 42.
  Random zero(0);
  EXPECT_EQ(zero.next(), 0x99EC5F36CB75F2B4u);
  EXPECT_EQ(zero.next(), 0xBF6E1F784956452Au);
  const double u = Random(42).uniform();
  EXPECT_GE(u, 0);
  EXPECT_LT(u, 1);
}

TEST(Sampler, GreedyTakesTheLowestIdOfTheLargest) {
  const std::array<float, 5> logits = {1, 3, 3, -2, 3};
  EXPECT_EQ(*make({}, 5).next(logits), 1);
}

TEST(Sampler, TemperatureZeroIsGreedyWhateverElseIsSet) {
  const std::array<float, 4> logits = {0.5f, 0.1f, 2.0f, 1.9f};
  const SamplingOptions options{.temperature = 0.0f, .top_k = 3, .top_p = 0.9f, .min_p = 0.01f, .seed = 7};
  Sampler s = make(options, 4);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(*s.next(logits), 2);
}

TEST(Sampler, PenaltyMultipliesNegativeLogitsAndDividesPositiveOnes) {
  // Token 0: -2 * 1.5 = -3 is below -2.5; divided it would be -1.33 and win.
  const std::array<float, 2> negative = {-2, -2.5f};
  Sampler s = make({.repetition_penalty = 1.5f}, 2);
  const std::array<int32_t, 1> prompt = {0};
  ASSERT_TRUE(s.see_prompt(prompt).ok());
  EXPECT_EQ(*s.next(negative), 1);
  const std::array<float, 2> positive = {3, 2.1f};  // 3 / 1.5 = 2
  s.reset(0);
  ASSERT_TRUE(s.see_prompt(prompt).ok());
  EXPECT_EQ(*s.next(positive), 1);
}

TEST(Sampler, PenaltyCountsATokenOnceHoweverOftenItWasSeen) {
  const std::array<float, 2> logits = {3, 1.9f};  // once: 2; five times: 0.39
  Sampler s = make({.repetition_penalty = 1.5f}, 2);
  const std::array<int32_t, 5> prompt = {0, 0, 0, 0, 0};
  ASSERT_TRUE(s.see_prompt(prompt).ok());
  EXPECT_EQ(*s.next(logits), 0);
}

TEST(Sampler, PenaltyCountsPromptAndOutputOrOutputAlone) {
  const std::array<float, 2> logits = {3, 2.5f};
  const std::array<int32_t, 1> prompt = {0};
  Sampler both = make({.repetition_penalty = 1.5f}, 2);
  ASSERT_TRUE(both.see_prompt(prompt).ok());
  EXPECT_EQ(*both.next(logits), 1);
  EXPECT_EQ(*both.next(logits), 0);  // both seen now: 2 against 1.67
  Sampler output = make({.repetition_penalty = 1.5f, .penalize_prompt = false}, 2);
  ASSERT_TRUE(output.see_prompt(prompt).ok());
  EXPECT_EQ(*output.next(logits), 0);
  EXPECT_EQ(*output.next(logits), 1);
}

TEST(Sampler, TopKKeepsTies) {
  const std::array<float, 4> logits = {1, 2, 2, 0};
  const auto s = shares({.temperature = 1.0f, .top_k = 1}, logits);
  EXPECT_EQ(s.size(), 2u);
  EXPECT_NEAR(s.at(1), 0.5, 0.02);
  EXPECT_NEAR(s.at(2), 0.5, 0.02);
}

TEST(Sampler, TopKBeyondTheVocabularyKeepsAll) {
  const std::array<float, 3> logits = {0, 0, 0};
  EXPECT_EQ(shares({.temperature = 1.0f, .top_k = 1000}, logits).size(), 3u);
}

TEST(Sampler, TopPKeepsTheSmallestSetThatReachesP) {
  // Probabilities 0.5, 0.3, 0.15, 0.05.
  const std::array<float, 4> logits = {std::log(0.5f), std::log(0.3f), std::log(0.15f), std::log(0.05f)};
  EXPECT_EQ(shares({.temperature = 1.0f, .top_p = 0.4f}, logits).size(), 1u);
  const auto two = shares({.temperature = 1.0f, .top_p = 0.7f}, logits);
  EXPECT_EQ(two.size(), 2u);
  EXPECT_NEAR(two.at(0), 0.625, 0.02);
  EXPECT_EQ(shares({.temperature = 1.0f, .top_p = 0.9f}, logits).size(), 3u);
  EXPECT_EQ(shares({.temperature = 1.0f, .top_p = 0.0f}, logits).size(), 1u);
  EXPECT_EQ(shares({.temperature = 1.0f, .top_p = 1.0f}, logits).size(), 4u);
}

TEST(Sampler, MinPIsAShareOfTheLargest) {
  const std::array<float, 4> logits = {std::log(0.5f), std::log(0.3f), std::log(0.15f), std::log(0.05f)};
  EXPECT_EQ(shares({.temperature = 1.0f, .min_p = 0.25f}, logits).size(), 3u);  // 0.125 and up
  EXPECT_EQ(shares({.temperature = 1.0f, .min_p = 1.0f}, logits).size(), 1u);
}

TEST(Sampler, TemperatureComesBeforeTopP) {
  // At temperature 0.5 the probabilities become 0.69, 0.25, 0.06: two reach 0.9, where three are needed at 1.
  const std::array<float, 3> logits = {std::log(0.5f), std::log(0.3f), std::log(0.15f)};
  EXPECT_EQ(shares({.temperature = 0.5f, .top_p = 0.9f}, logits).size(), 2u);
}

TEST(Sampler, DrawsFollowTheProbabilities) {
  const std::array<float, 3> logits = {std::log(0.2f), std::log(0.7f), std::log(0.1f)};
  const auto s = shares({.temperature = 1.0f, .seed = 3}, logits);
  EXPECT_NEAR(s.at(0), 0.2, 0.02);
  EXPECT_NEAR(s.at(1), 0.7, 0.02);
  EXPECT_NEAR(s.at(2), 0.1, 0.02);
}

TEST(Sampler, ASeedRepeatsItself) {
  const std::array<float, 6> logits = {0, 0.1f, 0.2f, 0.3f, 0.4f, 0.5f};
  Sampler a = make({.temperature = 1.0f, .seed = 11}, 6);
  Sampler b = make({.temperature = 1.0f, .seed = 11}, 6);
  std::vector<int32_t> first;
  for (int i = 0; i < 100; ++i) {
    first.push_back(*a.next(logits));
    EXPECT_EQ(first.back(), *b.next(logits));
  }
  a.reset(11);
  for (int32_t id : first) EXPECT_EQ(*a.next(logits), id);
}

TEST(Sampler, ATinyTemperatureIsTheLargest) {
  const std::array<float, 3> logits = {1, 1000, 999};
  Sampler s = make({.temperature = 1e-30f}, 3);
  EXPECT_EQ(*s.next(logits), 1);
}

TEST(Sampler, RefusesLogitsThatMeanNothing) {
  const std::array<float, 2> nan = {0, NAN};
  const std::array<float, 2> inf = {kInf, 0};
  const std::array<float, 2> masked = {-kInf, -kInf};
  const std::array<float, 1> few = {0};
  Sampler s = make({.temperature = 1.0f}, 2);
  EXPECT_FALSE(s.next(nan).ok());
  EXPECT_FALSE(s.next(inf).ok());
  EXPECT_FALSE(s.next(masked).ok());
  EXPECT_FALSE(s.next(few).ok());
  const std::array<float, 2> one_left = {-kInf, -5};
  EXPECT_EQ(*s.next(one_left), 1);
}

TEST(Sampler, RefusesOptionsOutOfRange) {
  EXPECT_FALSE(Sampler::create({.temperature = -1.0f}, 4).ok());
  EXPECT_FALSE(Sampler::create({.temperature = NAN}, 4).ok());
  EXPECT_FALSE(Sampler::create({.top_k = -1}, 4).ok());
  EXPECT_FALSE(Sampler::create({.top_p = 1.5f}, 4).ok());
  EXPECT_FALSE(Sampler::create({.min_p = NAN}, 4).ok());
  EXPECT_FALSE(Sampler::create({.repetition_penalty = 0}, 4).ok());
  EXPECT_FALSE(Sampler::create({}, 0).ok());
  const std::array<int32_t, 1> beyond = {4};
  EXPECT_FALSE(make({}, 4).see_prompt(beyond).ok());
}

}  // namespace
}  // namespace decant::text
