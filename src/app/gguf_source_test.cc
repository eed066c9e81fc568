#include "app/gguf_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>
#include <vector>

#include "app/gguf_rope.h"
#include "base/file_writer.h"
#include "formats/gguf/gguf_file.h"

namespace decant::app {
namespace {

using testing::HasSubstr;

const std::string kFolder = DECANT_SOURCE_DIR "/testdata/gguf/";

nlohmann::json config_of(const std::string& name) {
  const auto file = gguf::GgufFile::open(kFolder + name);
  if (!file.ok()) return file.status().to_string();
  const auto text = hf_config_from_gguf(**file);
  if (!text.ok()) return text.status().to_string();
  return nlohmann::json::parse(*text);
}

// testdata/gguf/make_configs.py wrote the files and what Transformers reads from them.
TEST(GgufSource, ConfigEqualsTransformers) {
  const auto text = read_file(kFolder + "configs.json");
  ASSERT_TRUE(text.ok());
  const auto expected = nlohmann::json::parse(*text);
  EXPECT_EQ(expected.size(), 3u);
  for (const auto& model : expected.items()) {
    const nlohmann::json config = config_of(model.key());
    ASSERT_TRUE(config.is_object()) << config;
    for (const auto& item : model.value().items()) {
      EXPECT_EQ(config.value(item.key(), nlohmann::json()), item.value()) << model.key() << " " << item.key();
    }
    EXPECT_EQ(config["eos_token_id"], 2);
    EXPECT_EQ(config["bos_token_id"], 1);
    EXPECT_EQ(config["torch_dtype"], "float16");
    EXPECT_EQ(config["attention_bias"], false);
  }
}

TEST(GgufSource, Llama3RopeComesFromItsTensor) {
  EXPECT_TRUE(config_of("tied.gguf")["rope_scaling"].is_null());
  const auto rope = config_of("llama3.gguf")["rope_scaling"];
  EXPECT_EQ(rope["rope_type"], "llama3");
  EXPECT_EQ(rope["factor"], 8.0);
  EXPECT_EQ(rope["low_freq_factor"], 1.0);
  EXPECT_EQ(rope["high_freq_factor"], 4.0);
  EXPECT_EQ(rope["original_max_position_embeddings"], 8192);
  const auto other = config_of("llama3_other.gguf")["rope_scaling"];
  EXPECT_EQ(other["factor"], 4.0);
  EXPECT_NEAR(other["high_freq_factor"].get<double>(), 6.0, 1e-3);
  EXPECT_NEAR(other["original_max_position_embeddings"].get<double>(), 1000.0, 1.0);
}

TEST(GgufSource, FitRefusesOtherDivisors) {
  EXPECT_FALSE(fit_llama3_rope({}, 10000.0, std::nullopt).has_value());
  EXPECT_FALSE(fit_llama3_rope(std::vector<float>{1, 5, 2, 7}, 10000.0, std::nullopt).has_value());
  EXPECT_FALSE(fit_llama3_rope(std::vector<float>{NAN, 8}, 10000.0, std::nullopt).has_value());
  EXPECT_FALSE(fit_llama3_rope(std::vector<float>{0.5f, 0.5f}, 10000.0, std::nullopt).has_value());
  const auto none = fit_llama3_rope(std::vector<float>{1, 1, 1}, 10000.0, std::nullopt);
  ASSERT_TRUE(none.has_value());
  EXPECT_EQ(none->factor, 1.0);
}

TEST(GgufSource, GenerationConfigHasEveryEnd) {
  const auto file = gguf::GgufFile::open(kFolder + "tied.gguf");
  ASSERT_TRUE(file.ok());
  const auto text = hf_generation_config_from_gguf(**file);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(nlohmann::json::parse(*text)["eos_token_id"], nlohmann::json::array({2, 3}));
}

// Metadata changed in place, one value at a time: what disagrees is named.
TEST(GgufSource, RefusesWhatDisagrees) {
  const auto original = read_file(kFolder + "tied.gguf");
  ASSERT_TRUE(original.ok());
  const auto with = [&](const std::string& key, uint32_t value) {
    std::string bytes = *original;
    const size_t at = bytes.find(key) + key.size() + 4;  // after the type tag
    bytes.replace(at, 4, reinterpret_cast<const char*>(&value), 4);
    const std::string path = testing::TempDir() + "decant_changed.gguf";
    EXPECT_TRUE(write_file(path, bytes).ok());
    const auto file = gguf::GgufFile::open(path);
    if (!file.ok()) return file.status().to_string();
    const auto text = hf_config_from_gguf(**file);
    return text.ok() ? "no error" : text.status().to_string();
  };
  EXPECT_EQ(with("llama.block_count", 2), "no error");
  EXPECT_THAT(with("llama.block_count", 0), HasSubstr("'llama.block_count' is 0"));
  EXPECT_THAT(with("llama.block_count", 1), HasSubstr("more layers"));
  EXPECT_THAT(with("llama.block_count", 100000), HasSubstr("blk.99999.attn_norm.weight"));
  EXPECT_THAT(with("llama.attention.head_count", 0), HasSubstr("head_count' is 0"));
  EXPECT_THAT(with("llama.attention.head_count", 3), HasSubstr("attn_q.weight"));
  EXPECT_THAT(with("llama.attention.head_count_kv", 3), HasSubstr("cannot share"));
  EXPECT_THAT(with("llama.vocab_size", 17), HasSubstr("17 entries"));
  EXPECT_THAT(with("llama.embedding_length", 64), HasSubstr("token_embd.weight"));
}

}  // namespace
}  // namespace decant::app
