#include "decant/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "app/tiny_llama.h"
#include "base/status.h"
#include "formats/onnx/lower/lower.h"
#include "formats/onnx/writer.h"

namespace decant {
namespace {

using ::testing::HasSubstr;

class TextModelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) / "decant_text_model";
    std::filesystem::create_directories(folder_);
    auto graph = app::testing::capture_tiny(models::CacheForm::kStatic);
    ASSERT_TRUE(onnx::lower_to_opset(*graph, 24).ok());
    onnx::WriteOptions options;
    options.opset = 24;
    ASSERT_TRUE(onnx::write_model(*graph, (folder_ / "model.onnx").string(), options).ok());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  TextModel load(int64_t max_cache_len = 32) {
    LoadOptions options;
    options.threads = 1;
    options.max_cache_len = max_cache_len;
    auto model = TextModel::load(folder_.string(), options);
    EXPECT_TRUE(model.ok()) << model.status().to_string();
    return *std::move(model);
  }

  std::filesystem::path folder_;
};

const std::vector<int32_t> kPrompt = {5, 17, 3, 88};

TEST_F(TextModelTest, GeneratesTheSameIdsInOneCallOrInSteps) {
  GenerateOptions options;
  options.max_new_tokens = 6;
  TextModel whole = load();
  const auto all = whole.generate(kPrompt, options);
  ASSERT_TRUE(all.ok()) << all.status().to_string();
  ASSERT_EQ(all->ids.size(), 6u);
  EXPECT_EQ(all->finish, FinishReason::kLength);
  EXPECT_EQ(all->prompt_tokens, 4);

  TextModel stepped = load();
  ASSERT_TRUE(stepped.append(kPrompt).ok());
  std::vector<int32_t> ids;
  for (int i = 0; i < 6; ++i) {
    const auto logits = stepped.logits();
    ids.push_back(static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
    ASSERT_TRUE(stepped.append(std::span(&ids.back(), 1)).ok());
  }
  EXPECT_EQ(ids, all->ids);
}

TEST_F(TextModelTest, RewindsToAnEarlierLength) {
  TextModel model = load();
  ASSERT_TRUE(model.append(kPrompt).ok());
  const std::vector<float> before(model.logits().begin(), model.logits().end());
  const std::vector<int32_t> more = {9, 60, 2};
  ASSERT_TRUE(model.append(more).ok());
  EXPECT_EQ(model.length(), 7);
  ASSERT_TRUE(model.rewind(3).ok());
  ASSERT_TRUE(model.append(std::span(kPrompt).subspan(3)).ok());
  EXPECT_EQ(model.length(), 4);
  for (size_t i = 0; i < before.size(); ++i) EXPECT_NEAR(model.logits()[i], before[i], 1e-5f);
  EXPECT_EQ(model.rewind(5).code(), StatusCode::kOutOfRange);
}

TEST_F(TextModelTest, SaysWhenTheCacheIsFull) {
  TextModel model = load(6);
  EXPECT_EQ(model.capacity(), 6);
  ASSERT_TRUE(model.append(kPrompt).ok());
  EXPECT_EQ(model.append(kPrompt).code(), StatusCode::kOutOfRange);
  EXPECT_EQ(model.length(), 4);
}

TEST_F(TextModelTest, AStreamRestsBetweenTokens) {
  GenerateOptions options;
  options.max_new_tokens = 6;
  TextModel model = load();
  const auto all = model.generate(kPrompt, options);
  ASSERT_TRUE(all.ok()) << all.status().to_string();
  ASSERT_TRUE(model.rewind(0).ok());
  auto stream = model.start(kPrompt, options);
  ASSERT_TRUE(stream.ok()) << stream.status().to_string();
  std::vector<int32_t> ids;
  for (;;) {
    const auto step = stream->next();
    ASSERT_TRUE(step.ok()) << step.status().to_string();
    if (!*step) break;
    ASSERT_TRUE((*step)->id.has_value());
    ids.push_back(*(*step)->id);
  }
  EXPECT_EQ(ids, all->ids);
  EXPECT_EQ(stream->generation().ids, all->ids);
  EXPECT_EQ(stream->generation().finish, FinishReason::kLength);
  const auto after = stream->next();
  ASSERT_TRUE(after.ok());
  EXPECT_FALSE(*after);
}

TEST_F(TextModelTest, OtherUsesOfTheSequenceEndAStream) {
  TextModel model = load();
  auto stream = model.start(kPrompt);
  ASSERT_TRUE(stream.ok());
  ASSERT_TRUE(stream->next().ok());
  ASSERT_TRUE(model.rewind(0).ok());
  EXPECT_EQ(stream->next().status().code(), StatusCode::kInvalidArgument);
}

TEST_F(TextModelTest, AStopOrADeadlineInterrupts) {
  TextModel model = load();
  std::stop_source source;
  GenerateOptions options;
  options.max_new_tokens = 20;
  options.limits.stop = source.get_token();
  auto stream = model.start(kPrompt, options);
  ASSERT_TRUE(stream.ok());
  ASSERT_TRUE(stream->next().ok());
  source.request_stop();
  const auto end = stream->next();
  ASSERT_TRUE(end.ok());
  EXPECT_FALSE(*end);
  EXPECT_EQ(stream->generation().finish, FinishReason::kInterrupted);
  EXPECT_EQ(stream->generation().ids.size(), 1u);
  EXPECT_EQ(model.length(), 4);

  options.limits = RunOptions::within(-std::chrono::seconds(1));
  const auto late = model.generate(kPrompt, options);
  ASSERT_TRUE(late.ok()) << late.status().to_string();
  EXPECT_EQ(late->finish, FinishReason::kInterrupted);
  EXPECT_TRUE(late->ids.empty());
}

TEST_F(TextModelTest, KeepsTheBeginningThatIsHeld) {
  TextModel model = load();
  ASSERT_TRUE(model.append(kPrompt).ok());
  const std::vector<float> before(model.logits().begin(), model.logits().end());
  const auto same = model.keep_prefix(kPrompt);
  ASSERT_TRUE(same.ok());
  EXPECT_EQ(*same, 3);  // one id is left to run
  ASSERT_TRUE(model.append(std::span(kPrompt).subspan(3)).ok());
  for (size_t i = 0; i < before.size(); ++i) EXPECT_NEAR(model.logits()[i], before[i], 1e-5f);
  const auto other = model.keep_prefix(std::vector<int32_t>{5, 17, 4, 88});
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(*other, 2);
  EXPECT_EQ(model.length(), 2);
  EXPECT_EQ(*model.keep_prefix(std::vector<int32_t>{6}), 0);
}

TEST_F(TextModelTest, NamesTheMissingTokenizer) {
  TextModel model = load();
  const auto out = model.generate("some text");
  ASSERT_FALSE(out.ok());
  EXPECT_THAT(out.status().message(), HasSubstr("tokenizer"));
}

}  // namespace
}  // namespace decant
