#include "formats/huggingface/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace decant::huggingface {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ModelConfig config(const std::string& json) {
  auto parsed = ModelConfig::parse(json, "config.json");
  EXPECT_TRUE(parsed.ok()) << parsed.status().to_string();
  return *std::move(parsed);
}

TEST(ModelConfig, TypedReads) {
  const ModelConfig c = config(R"({"model_type":"llama","n":4,"f":8192.0,"h":0.5,"b":true,"z":null,"s":"x",
    "ints":[1,2.0],"strings":["a"],"mixed":[1,"a"],"text_config":{"n":7},"architectures":["A","B"],
    "torch_dtype":"torch.bfloat16","twice":1,"twice":2})");
  EXPECT_EQ(*c.model_type(), "llama");
  EXPECT_EQ(*c.get_int("n"), 4);
  EXPECT_EQ(*c.get_int("f"), 8192);
  EXPECT_EQ(*c.get_double("n"), 4.0);
  EXPECT_EQ(*c.get_int("twice"), 2);
  EXPECT_EQ(*c.get_int("text_config.n"), 7);
  EXPECT_EQ(*c.get_int("z", 9), 9);
  EXPECT_FALSE(c.has("z"));
  EXPECT_FALSE(c.has("n.m"));
  EXPECT_THAT(*c.get_ints("ints"), ElementsAre(1, 2));
  EXPECT_THAT(*c.get_strings("strings"), ElementsAre("a"));
  EXPECT_THAT(c.architectures(), ElementsAre("A", "B"));
  EXPECT_EQ(*c.dtype(), DType::kBFloat16);
  EXPECT_THAT(c.keys("text_config"), ElementsAre("n"));
  EXPECT_EQ(c.get_int("z").status().code(), StatusCode::kNotFound);
  EXPECT_THAT(c.get_int("h").status().message(), HasSubstr("config.json: \"h\" is the number 0.5"));
  EXPECT_FALSE(c.get_int("b").ok());
  EXPECT_FALSE(c.get_double("b").ok());
  EXPECT_FALSE(c.get_bool("n").ok());
  EXPECT_FALSE(c.get_bool("n", true).ok());
  EXPECT_THAT(c.get_ints("mixed").status().message(), HasSubstr("mixed[1]"));
}

TEST(ModelConfig, RefusesBadText) {
  for (const std::string& text :
       {std::string(""), std::string("[]"), std::string("{\"a\":1e999999}"), std::string("{\"\xff\":1}"),
        std::string("{\"a\":1"), std::string("{} x"), "{\"a\":" + std::string(1000000, '['),
        "{\"a\":" + std::string(200, '[') + std::string(200, ']') + "}"}) {
    const auto parsed = ModelConfig::parse(text, "config.json");
    ASSERT_FALSE(parsed.ok()) << text.substr(0, 40);
    EXPECT_THAT(parsed.status().message(), HasSubstr("config.json"));
  }
}

TEST(ModelConfig, EveryTruncationIsAnError) {
  const std::string text = R"({"a":[1,2,{"b":"c\"d"}],"e":null,"f":1.5e3})";
  for (size_t n = 0; n < text.size(); ++n) EXPECT_FALSE(ModelConfig::parse(text.substr(0, n), "x").ok()) << n;
}

TEST(ModelConfigRope, OldAndNewSpellingsAgree) {
  const auto old_way = config(R"({"rope_theta":500000.0,"rope_scaling":{"type":"llama3","factor":8.0,
    "low_freq_factor":1.0,"high_freq_factor":4.0,"original_max_position_embeddings":8192}})")
                           .rope();
  const auto new_way = config(R"({"rope_parameters":{"rope_theta":500000.0,"rope_type":"llama3","factor":8.0,
    "low_freq_factor":1.0,"high_freq_factor":4.0,"original_max_position_embeddings":8192}})")
                           .rope();
  ASSERT_TRUE(old_way.ok()) << old_way.status().to_string();
  ASSERT_TRUE(new_way.ok()) << new_way.status().to_string();
  for (const RopeParameters& rope : {*old_way, *new_way}) {
    EXPECT_EQ(rope.type, "llama3");
    EXPECT_EQ(rope.theta, 500000.0);
    EXPECT_EQ(rope.factor, 8.0);
    EXPECT_EQ(rope.original_max_position_embeddings, 8192);
  }
}

TEST(ModelConfigRope, DefaultsAndNull) {
  for (const char* text : {"{}", R"({"rope_scaling":null,"rope_theta":10000})", R"({"rope_scaling":{}})",
                           R"({"rope_parameters":{"rope_type":"default"}})"}) {
    const auto rope = config(text).rope();
    ASSERT_TRUE(rope.ok()) << text;
    EXPECT_EQ(rope->type, "default");
    EXPECT_EQ(rope->theta, 10000.0);
    EXPECT_EQ(rope->partial_rotary_factor, 1.0);
  }
  const auto yarn = config(R"({"rope_scaling":{"rope_type":"yarn","factor":4,"beta_fast":16,"truncate":false,
    "mscale":0.7,"attention_factor":null}})")
                        .rope();
  ASSERT_TRUE(yarn.ok());
  EXPECT_EQ(yarn->beta_fast, 16.0);
  EXPECT_EQ(yarn->beta_slow, 1.0);
  EXPECT_FALSE(yarn->truncate);
  EXPECT_EQ(yarn->mscale, 0.7);
  EXPECT_FALSE(yarn->attention_factor.has_value());
  EXPECT_EQ(config(R"({"partial_rotary_factor":0.5})").rope()->partial_rotary_factor, 0.5);
}

TEST(ModelConfigRope, PerLayerType) {
  const ModelConfig c = config(R"({"rope_parameters":{"full_attention":{"rope_type":"linear","factor":8,
    "rope_theta":1000000},"sliding_attention":{"rope_type":"default","rope_theta":10000}}})");
  EXPECT_EQ(c.rope("full_attention")->factor, 8.0);
  EXPECT_EQ(c.rope("sliding_attention")->theta, 10000.0);
  EXPECT_THAT(c.rope().status().message(), HasSubstr("full_attention, sliding_attention"));
}

TEST(ModelConfigRope, Refuses) {
  const auto error = [](const std::string& scaling) {
    return config("{\"rope_scaling\":" + scaling + "}").rope().status().to_string();
  };
  EXPECT_THAT(error(R"({"rope_type":"spiral","factor":2})"),
              HasSubstr("default, linear, dynamic, llama3, yarn"));
  EXPECT_THAT(error(R"({"rope_type":"linear"})"), HasSubstr("needs \"factor\""));
  EXPECT_THAT(error(R"({"rope_type":"linear","factor":0})"), HasSubstr("factor"));
  EXPECT_THAT(error(R"({"rope_type":"linear","factor":"2"})"), HasSubstr("\"factor\" is a string"));
  EXPECT_THAT(error(R"({"rope_type":"llama3","factor":2})"), HasSubstr("low_freq_factor"));
  EXPECT_THAT(error("3"), HasSubstr("an object"));
  EXPECT_THAT(config(R"({"rope_theta":-1})").rope().status().to_string(), HasSubstr("rope_theta"));
}

}  // namespace
}  // namespace decant::huggingface
