#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/testing.h"

namespace decant::models {
namespace {

using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

testing::MapWeights qwen2_weights() {
  testing::MapWeights w = testing::tiny_weights();
  for (const char* layer : {"model.layers.0.self_attn.", "model.layers.1.self_attn."}) {
    w.add(std::string(layer) + "q_proj.bias", {8});
    w.add(std::string(layer) + "k_proj.bias", {4});
    w.add(std::string(layer) + "v_proj.bias", {4});
  }
  return w;
}

testing::MapWeights qwen3_weights() {
  testing::MapWeights w = testing::tiny_weights();
  for (const char* layer : {"model.layers.0.self_attn.", "model.layers.1.self_attn."}) {
    w.add(std::string(layer) + "q_norm.weight", {4});
    w.add(std::string(layer) + "k_norm.weight", {4});
  }
  return w;
}

TEST(Qwen, EveryCacheFormGivesTheSameLogits) {
  for (const bool third : {false, true}) {
    const auto config = testing::tiny_config(third ? "qwen3" : "qwen2");
    const auto weights = third ? qwen3_weights() : qwen2_weights();
    const auto whole = testing::last_logits(config, weights, CacheForm::kNone, {5});
    ASSERT_TRUE(whole.ok()) << whole.status().to_string();
    for (CacheForm form : {CacheForm::kDynamic, CacheForm::kStatic}) {
      const auto logits = testing::last_logits(config, weights, form, {2, 1, 2});
      ASSERT_TRUE(logits.ok()) << logits.status().to_string();
      EXPECT_THAT(*logits, Pointwise(FloatNear(1e-5f), *whole));
    }
  }
}

TEST(Qwen, WindowsAreForAllLayersOrNone) {
  auto config = testing::tiny_config("qwen2");
  const auto weights = qwen2_weights();
  const auto open = testing::last_logits(config, weights, CacheForm::kNone, {5});
  ASSERT_TRUE(open.ok()) << open.status().to_string();
  config.numbers["sliding_window"] = 2;
  EXPECT_EQ(*testing::last_logits(config, weights, CacheForm::kNone, {5}), *open);  // not used
  config.numbers["use_sliding_window"] = 1;
  EXPECT_EQ(*testing::last_logits(config, weights, CacheForm::kNone, {5}), *open);  // from layer 28 on
  config.numbers["max_window_layers"] = 0;
  const auto windowed = testing::last_logits(config, weights, CacheForm::kNone, {5});
  ASSERT_TRUE(windowed.ok()) << windowed.status().to_string();
  EXPECT_NE(*windowed, *open);
  config.numbers["max_window_layers"] = 1;
  const auto mixed = capture(config, weights, {});
  EXPECT_EQ(mixed.status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(mixed.status().message(), HasSubstr("max_window_layers"));
}

TEST(Qwen, WantsItsBiasesAndNorms) {
  EXPECT_FALSE(capture(testing::tiny_config("qwen2"), testing::tiny_weights(), {}).ok());
  EXPECT_FALSE(capture(testing::tiny_config("qwen3"), testing::tiny_weights(), {}).ok());
  EXPECT_FALSE(capture(testing::tiny_config("llama"), qwen3_weights(), {}).ok());  // norms that nothing reads
}

}  // namespace
}  // namespace decant::models
