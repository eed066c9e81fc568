#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/testing.h"

namespace decant::models {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

TEST(Mistral, WindowHoldsInEveryCacheForm) {
  auto config = testing::tiny_config("mistral");
  const auto weights = testing::tiny_weights();
  const auto open = testing::last_logits(config, weights, CacheForm::kNone, {5});
  ASSERT_TRUE(open.ok()) << open.status().to_string();
  config.numbers["sliding_window"] = 5;  // as long as the text
  EXPECT_EQ(*testing::last_logits(config, weights, CacheForm::kNone, {5}), *open);

  config.numbers["sliding_window"] = 2;
  const auto whole = testing::last_logits(config, weights, CacheForm::kNone, {5});
  ASSERT_TRUE(whole.ok()) << whole.status().to_string();
  EXPECT_NE(*whole, *open);
  for (CacheForm form : {CacheForm::kDynamic, CacheForm::kStatic}) {
    const auto logits = testing::last_logits(config, weights, form, {2, 1, 2});
    ASSERT_TRUE(logits.ok()) << logits.status().to_string();
    EXPECT_THAT(*logits, Pointwise(FloatNear(1e-5f), *whole));
  }
}

TEST(Mistral, RefusesAnEmptyWindow) {
  auto config = testing::tiny_config("mistral");
  config.numbers["sliding_window"] = 0;
  EXPECT_EQ(capture(config, testing::tiny_weights(), {}).status().code(), StatusCode::kInvalidModel);
}

}  // namespace
}  // namespace decant::models
