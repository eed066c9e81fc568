#include "models/rope.h"

#include <cmath>

#include <gtest/gtest.h>

namespace decant::models {
namespace {

TEST(Rope, DefaultFrequencies) {
  const auto f = rotary_frequencies({}, 8, 32);
  ASSERT_TRUE(f.ok()) << f.status().to_string();
  ASSERT_EQ(f->inverse.size(), 4u);
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(f->inverse[static_cast<size_t>(i)], std::pow(10.0, -i), 1e-6);
  EXPECT_EQ(f->attention_factor, 1.0f);
}

TEST(Rope, LinearDividesByTheFactor) {
  const auto f = rotary_frequencies({.type = "linear", .factor = 4.0}, 8, 32);
  ASSERT_TRUE(f.ok());
  EXPECT_FLOAT_EQ(f->inverse[0], 0.25f);
}

TEST(Rope, Llama3KeepsShortAndStretchesLongWavelengths) {
  const auto f =
      rotary_frequencies({.type = "llama3", .factor = 8.0, .original_max_position_embeddings = 64}, 8, 512);
  ASSERT_TRUE(f.ok());
  EXPECT_FLOAT_EQ(f->inverse[0], 1.0f);
  EXPECT_NEAR(f->inverse[3], 1e-3 / 8, 1e-9);
}

TEST(Rope, YarnScalesTheTables) {
  const auto f =
      rotary_frequencies({.type = "yarn", .factor = 4.0, .original_max_position_embeddings = 16}, 8, 64);
  ASSERT_TRUE(f.ok());
  EXPECT_NEAR(f->attention_factor, 0.1 * std::log(4.0) + 1.0, 1e-6);
}

TEST(Rope, Refusals) {
  EXPECT_EQ(rotary_frequencies({.type = "spiral"}, 8, 32).status().code(), StatusCode::kUnsupported);
  EXPECT_EQ(rotary_frequencies({.partial_rotary_factor = 0.5}, 8, 32).status().code(),
            StatusCode::kUnsupported);
  EXPECT_EQ(rotary_frequencies({}, 7, 32).status().code(), StatusCode::kInvalidModel);
  EXPECT_EQ(rotary_frequencies({.theta = 0.0}, 8, 32).status().code(), StatusCode::kInvalidModel);
  EXPECT_EQ(rotary_frequencies({.type = "dynamic"}, 2, 32).status().code(), StatusCode::kInvalidModel);
}

}  // namespace
}  // namespace decant::models
