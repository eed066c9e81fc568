#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/testing.h"

namespace decant::models {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

TEST(Llama, EveryCacheFormGivesTheSameLogits) {
  const auto config = testing::tiny_config("llama");
  const auto weights = testing::tiny_weights();
  const auto whole = testing::last_logits(config, weights, CacheForm::kNone, {5});
  ASSERT_TRUE(whole.ok()) << whole.status().to_string();
  for (CacheForm form : {CacheForm::kDynamic, CacheForm::kStatic}) {
    for (const std::vector<int64_t>& pieces : {std::vector<int64_t>{5}, {2, 1, 2}}) {
      const auto logits = testing::last_logits(config, weights, form, pieces);
      ASSERT_TRUE(logits.ok()) << logits.status().to_string();
      EXPECT_THAT(*logits, Pointwise(FloatNear(1e-5f), *whole));
    }
  }
}

TEST(Llama, StatesNameTheCaches) {
  const auto config = testing::tiny_config("llama");
  const auto weights = testing::tiny_weights();
  const auto graph = capture(config, weights, {.cache = CacheForm::kStatic, .max_cache_len = 16});
  ASSERT_TRUE(graph.ok()) << graph.status().to_string();
  EXPECT_TRUE(ir::validate(**graph).ok());
  ASSERT_EQ((*graph)->states.size(), 4u);
  const ir::State& state = (*graph)->states[3];
  EXPECT_EQ(state.input->name, "past_key_values.1.value");
  EXPECT_EQ(state.output->name, "present.1.value");
  EXPECT_EQ(state.form, ir::State::Form::kFixed);
  EXPECT_EQ(ir::to_string(*state.output->shape), "[batch_size, 1, 16, 4]");
  EXPECT_EQ(ir::to_string(*(*graph)->outputs()[0]->shape), "[batch_size, sequence_length, 12]");
}

TEST(Llama, TiedHeadReadsTheEmbeddingTable) {
  auto config = testing::tiny_config("llama");
  config.numbers["tie_word_embeddings"] = 1;
  auto weights = testing::tiny_weights();
  weights.erase("lm_head.weight");
  const auto graph = capture(config, weights, {});
  ASSERT_TRUE(graph.ok()) << graph.status().to_string();
  EXPECT_EQ((*graph)->find_value("model.embed_tokens.weight")->users().size(), 2u);
}

TEST(Llama, NamesMissingUnusedAndMisshapenTensors) {
  const auto config = testing::tiny_config("llama");
  auto weights = testing::tiny_weights();
  weights.erase("lm_head.weight");
  weights.add("model.layers.1.mlp.up_proj.weight", {9, 8});
  weights.add("model.layers.2.mlp.up_proj.weight", {10, 8});
  weights.add("model.layers.0.self_attn.rotary_emb.inv_freq", {2});
  const auto graph = capture(config, weights, {});
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.status().code(), StatusCode::kInvalidModel);
  const std::string& message = graph.status().message();
  EXPECT_THAT(message, HasSubstr("missing from the checkpoint:\n  lm_head.weight [12,8]"));
  EXPECT_THAT(
      message,
      HasSubstr("model.layers.1.mlp.up_proj.weight: is float32[9,8], the config asks for float32[10,8]"));
  EXPECT_THAT(message, HasSubstr("does not use:\n  model.layers.2.mlp.up_proj.weight"));
  EXPECT_THAT(message, ::testing::Not(HasSubstr("inv_freq")));
}

TEST(Architectures, UnknownModelTypeListsTheKnownOnes) {
  const auto weights = testing::tiny_weights();
  const auto graph = capture(testing::tiny_config("perceptron"), weights, {});
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(graph.status().message(), HasSubstr("supported: llama, mistral, qwen2, qwen3"));
  EXPECT_THAT(model_types(), ElementsAre("llama", "mistral", "qwen2", "qwen3"));
}

TEST(Architectures, ImpossibleSizesAreRefused) {
  const auto weights = testing::tiny_weights();
  for (const auto& [key, value] : std::map<std::string, double>{{"num_hidden_layers", -1},
                                                                {"hidden_size", 0},
                                                                {"num_key_value_heads", 3},
                                                                {"num_attention_heads", 100}}) {
    auto config = testing::tiny_config("llama");
    config.numbers[key] = value;
    const auto graph = capture(config, weights, {});
    EXPECT_EQ(graph.status().code(), StatusCode::kInvalidModel) << key;
  }
}

}  // namespace
}  // namespace decant::models
