#include "text/tokenizer/gguf_vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/tokenizer/tokenizer.h"

namespace decant::text {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

GgufVocabulary smollm() {
  GgufVocabulary v;
  v.model = "gpt2";
  v.pre = "smollm";
  v.tokens = {"<s>", "</s>", "1", "2", "12", "a", "\u0120", "\u0120a", "<tool>"};
  v.merges = {"1 2", "\u0120 a"};
  v.token_types = {3, 3, 1, 1, 1, 1, 1, 1, 4};
  v.bos_id = 0;
  v.eos_id = 1;
  return v;
}

TEST(GgufVocabulary, SplitsDigitsWhereThePreTokenizerSaysSo) {
  GgufVocabulary v = smollm();
  auto t = Tokenizer::from_gguf(v);
  ASSERT_TRUE(t.ok()) << t.status().to_string();
  EXPECT_THAT(*t->encode("12 a<s><tool>", true), ElementsAre(2, 3, 7, 0, 8));
  EXPECT_EQ(t->special_ids().bos, 0);
  EXPECT_EQ(t->special_ids().eos, 1);
  EXPECT_TRUE(t->is_special(0));
  EXPECT_FALSE(t->is_special(8));
  v.pre = "gpt-2";
  EXPECT_THAT(*Tokenizer::from_gguf(v)->encode("12", true), ElementsAre(4));
}

TEST(GgufVocabulary, AddsBosAndEosAsTheFileSays) {
  GgufVocabulary v = smollm();
  v.add_bos = true;
  v.add_eos = true;
  auto t = Tokenizer::from_gguf(v);
  ASSERT_TRUE(t.ok()) << t.status().to_string();
  EXPECT_THAT(*t->encode("a", true), ElementsAre(0, 5, 1));
  EXPECT_THAT(*t->encode("a", false), ElementsAre(5));
  auto again = Tokenizer::from_json(t->to_json(), "again");
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_THAT(*again->encode("a", true), ElementsAre(0, 5, 1));
}

TEST(GgufVocabulary, EveryKnownPreTokenizerBuilds) {
  for (const std::string_view name : known_gguf_pre_tokenizers()) {
    GgufVocabulary v = smollm();
    v.pre = name;
    v.add_bos = false;
    auto t = Tokenizer::from_gguf(v);
    ASSERT_TRUE(t.ok()) << name << ": " << t.status().to_string();
    EXPECT_EQ(t->decode(*t->encode("12 a", true)), "12 a") << name;
  }
}

TEST(GgufVocabulary, MergesOfAbsentTokensAreLeftOut) {
  GgufVocabulary v = smollm();
  v.merges.insert(v.merges.begin(), "a a");
  auto t = Tokenizer::from_gguf(v);
  ASSERT_TRUE(t.ok()) << t.status().to_string();
  EXPECT_THAT(*t->encode("aa", true), ElementsAre(5, 5));
}

TEST(GgufVocabulary, SentencePieceMergesComeFromScores) {
  GgufVocabulary v;
  v.model = "llama";
  v.tokens = {"<unk>", "<s>", "</s>", "<0xC3>", "<0xA9>", "\u2581", "a", "b", "\u2581a", "ab", "\u2581ab"};
  v.scores = {0, 0, 0, 0, 0, -6, -7, -8, -2, -1, -3};
  v.token_types = {2, 3, 3, 6, 6, 1, 1, 1, 1, 1, 1};
  v.unk_id = 0;
  v.bos_id = 1;
  auto t = Tokenizer::from_gguf(v);
  ASSERT_TRUE(t.ok()) << t.status().to_string();
  EXPECT_THAT(*t->encode("ab a", true), ElementsAre(1, 10, 8));
  EXPECT_THAT(*t->encode("\u00e9?", false), ElementsAre(5, 3, 4, 0));
  EXPECT_EQ(t->decode(std::vector<int32_t>{1, 10, 8, 3, 4}, true), "ab a\u00e9");
}

void expect_error(const GgufVocabulary& v, StatusCode code, const std::string& part) {
  auto result = Tokenizer::from_gguf(v, "model.gguf");
  ASSERT_FALSE(result.ok()) << part;
  EXPECT_EQ(result.status().code(), code);
  EXPECT_THAT(result.status().message(), HasSubstr("model.gguf"));
  EXPECT_THAT(result.status().message(), HasSubstr(part));
}

TEST(GgufVocabulary, NamesWhatIsWrong) {
  GgufVocabulary v = smollm();
  v.pre = "never-heard-of";
  expect_error(v, StatusCode::kUnsupported, "'never-heard-of' is unknown; known: gpt-2");
  v = smollm();
  v.model = "t5";
  expect_error(v, StatusCode::kUnsupported, "'t5'");
  v = smollm();
  v.tokens[3] = "\xff";
  expect_error(v, StatusCode::kInvalidModel, "token 3");
  v = smollm();
  v.eos_id = 99;
  expect_error(v, StatusCode::kInvalidModel, "eos_token_id is 99");
  v = smollm();
  v.token_types.pop_back();
  expect_error(v, StatusCode::kInvalidModel, "token_type");
  v = smollm();
  v.merges.push_back("joined");
  expect_error(v, StatusCode::kInvalidModel, "'joined'");
  v = smollm();
  v.add_bos = true;
  v.bos_id.reset();
  expect_error(v, StatusCode::kInvalidModel, "add_bos_token");
  v = smollm();
  v.model = "llama";
  v.merges.clear();
  expect_error(v, StatusCode::kInvalidModel, "scores");
  v = smollm();
  v.tokens.clear();
  expect_error(v, StatusCode::kInvalidModel, "tokens");
}

}  // namespace
}  // namespace decant::text
