#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "formats/huggingface/config.h"
#include "formats/huggingface/generation_config.h"
#include "formats/huggingface/tokenizer_config.h"

namespace decant::huggingface {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class FolderConfigs : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "decant-configs-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { fs::remove_all(root_); }
  void put(const std::string& name, const std::string& text) {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name, std::ios::binary) << text;
  }
  fs::path root_;
};

TEST_F(FolderConfigs, ModelConfigLoads) {
  EXPECT_EQ(ModelConfig::load(root_.string()).status().code(), StatusCode::kNotFound);
  put("config.json", "{\"model_type\":\"llama\"}");
  const auto config = ModelConfig::load(root_.string());
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->json(), "{\"model_type\":\"llama\"}");
}

TEST_F(FolderConfigs, GenerationConfig) {
  EXPECT_TRUE(GenerationConfig::load(root_.string())->eos_token_ids.empty());
  put("config.json", R"({"eos_token_id":2,"bos_token_id":1,"pad_token_id":null})");
  const auto from_model = GenerationConfig::load(root_.string());
  EXPECT_THAT(from_model->eos_token_ids, ElementsAre(2));
  EXPECT_EQ(from_model->bos_token_id, 1);
  EXPECT_FALSE(from_model->pad_token_id.has_value());
  put("generation_config.json",
      R"({"eos_token_id":[5,6],"do_sample":true,"temperature":0.6,"top_p":0.9,"top_k":50,
    "repetition_penalty":1.1,"max_length":4096})");
  const auto own = GenerationConfig::load(root_.string());
  ASSERT_TRUE(own.ok());
  EXPECT_THAT(own->eos_token_ids, ElementsAre(5, 6));
  EXPECT_FALSE(own->bos_token_id.has_value());
  EXPECT_EQ(own->do_sample, true);
  EXPECT_EQ(own->temperature, 0.6);
  EXPECT_EQ(own->top_k, 50);
  EXPECT_EQ(own->max_length, 4096);
  put("generation_config.json", R"({"eos_token_id":["x"]})");
  EXPECT_THAT(GenerationConfig::load(root_.string()).status().message(), HasSubstr("eos_token_id"));
}

TEST_F(FolderConfigs, TokenizerConfig) {
  EXPECT_TRUE(TokenizerConfig::load(root_.string())->chat_templates.empty());
  put("tokenizer_config.json",
      R"({"chat_template":"T","bos_token":{"content":"<s>","lstrip":false},"eos_token":"</s>",
    "add_bos_token":true,"model_max_length":1000000000000000019884624838656,"pad_token":null})");
  put("special_tokens_map.json", R"({"pad_token":"<pad>","eos_token":"other"})");
  auto config = TokenizerConfig::load(root_.string());
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  EXPECT_EQ(*config->chat_template(), "T");
  EXPECT_EQ(config->bos_token, "<s>");
  EXPECT_EQ(config->eos_token, "</s>");
  EXPECT_EQ(config->pad_token, "<pad>");
  EXPECT_FALSE(config->unk_token.has_value());
  EXPECT_EQ(config->add_bos_token, true);
  EXPECT_FALSE(config->model_max_length.has_value());

  put("tokenizer_config.json",
      R"({"chat_template":[{"name":"default","template":"D"},{"name":"tool_use","template":"U"}],
    "model_max_length":8192})");
  config = TokenizerConfig::load(root_.string());
  EXPECT_EQ(*config->chat_template(), "D");
  EXPECT_EQ(*config->chat_template("tool_use"), "U");
  EXPECT_EQ(config->chat_template("rag"), nullptr);
  EXPECT_EQ(config->model_max_length, 8192);

  put("chat_template.jinja", "F");
  put("additional_chat_templates/rag.jinja", "R");
  config = TokenizerConfig::load(root_.string());
  EXPECT_EQ(*config->chat_template(), "F");
  EXPECT_EQ(*config->chat_template("rag"), "R");
  EXPECT_EQ(config->chat_template("tool_use"), nullptr);

  put("tokenizer_config.json", R"({"chat_template":[{"name":"default"}]})");
  EXPECT_THAT(TokenizerConfig::load(root_.string()).status().message(), HasSubstr("chat_template"));
}

// A hostile folder may not read files from elsewhere through links.
TEST_F(FolderConfigs, LinksMayNotLeave) {
  fs::create_directories(root_ / "model");
  put("secret", "S");
  fs::create_symlink("../secret", root_ / "model/chat_template.jinja");
  EXPECT_FALSE(TokenizerConfig::load((root_ / "model").string()).ok());
}

}  // namespace
}  // namespace decant::huggingface
