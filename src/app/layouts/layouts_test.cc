#include "app/layouts/layouts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace decant::app {
namespace {

namespace fs = std::filesystem;
using Role = Component::Role;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

/// A folder of files whose contents do not matter: layouts are found by names.
class Folder {
 public:
  explicit Folder(std::initializer_list<const char*> files) {
    static int count = 0;
    path_ = fs::path(::testing::TempDir()) /
            ("layouts_" + std::to_string(getpid()) + "_" + std::to_string(count++));
    for (const char* f : files) write(f, "{}");
  }
  ~Folder() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  void write(const std::string& name, const std::string& text) {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << text;
  }
  std::string path(const std::string& name = "") const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

std::vector<std::string> names(const Layout& layout) {
  std::vector<std::string> out;
  for (const Component& c : layout.components) out.push_back(c.name);
  return out;
}

TEST(Layouts, ARepositoryHasADtypeForEachSuffix) {
  const Folder f({"config.json", "onnx/model.onnx", "onnx/model_fp16.onnx", "onnx/model_q4.onnx",
                  "onnx/model_q4f16.onnx", "onnx/model_quantized.onnx", "onnx/model_bnb4.onnx",
                  "onnx/model_O3.onnx"});
  auto layout = find_layout(f.path());
  ASSERT_TRUE(layout.ok()) << layout.status().to_string();
  EXPECT_THAT(names(*layout), ElementsAre("model"));
  EXPECT_EQ(layout->dtype, "fp32");
  EXPECT_THAT(layout->dtypes, UnorderedElementsAre("fp32", "fp16", "q4", "q4f16", "q8", "bnb4", "O3"));
  EXPECT_TRUE(fs::equivalent(layout->folder, f.path()));
  for (const auto& [dtype, name] :
       std::initializer_list<std::pair<const char*, const char*>>{{"q8", "model_quantized"},
                                                                  {"quantized", "model_quantized"},
                                                                  {"fp16", "model_fp16"},
                                                                  {"O3", "model_O3"}}) {
    layout = find_layout(f.path(), dtype);
    ASSERT_TRUE(layout.ok()) << dtype << ": " << layout.status().to_string();
    EXPECT_THAT(names(*layout), ElementsAre(name));
  }
  layout = find_layout(f.path(), "int4");
  ASSERT_FALSE(layout.ok());
  EXPECT_THAT(layout.status().message(), HasSubstr("fp16"));
  EXPECT_THAT(layout.status().message(), HasSubstr("q4f16"));
}

TEST(Layouts, Q8IsInt8WhereNothingIsCalledQuantized) {
  const Folder f({"onnx/model.onnx", "onnx/model_int8.onnx", "onnx/model_uint8.onnx"});
  auto layout = find_layout(f.path(), "q8");
  ASSERT_TRUE(layout.ok()) << layout.status().to_string();
  EXPECT_THAT(names(*layout), ElementsAre("model_int8"));
}

TEST(Layouts, SplitAndMergedDecoders) {
  const Folder split({"decoder_model.onnx", "decoder_with_past_model.onnx"});
  auto layout = find_layout(split.path());
  ASSERT_TRUE(layout.ok()) << layout.status().to_string();
  EXPECT_EQ(layout->decoder()->name, "decoder_with_past_model");
  EXPECT_TRUE(layout->decoder()->steps_only);
  EXPECT_EQ(layout->find(Role::kFirstStep)->name, "decoder_model");
  EXPECT_EQ(layout->missing, "");

  const Folder both({"decoder_model.onnx", "decoder_with_past_model.onnx", "decoder_model_merged.onnx"});
  layout = find_layout(both.path());
  ASSERT_TRUE(layout.ok());
  EXPECT_EQ(layout->decoder()->name, "decoder_model_merged");
  EXPECT_EQ(layout->find(Role::kFirstStep), nullptr);
  EXPECT_EQ(find_layout(both.path("decoder_model.onnx"))->main()->name, "decoder_model");
}

TEST(Layouts, EncoderDecoderPairsSayWhatIsMissing) {
  const Folder whole(
      {"onnx/encoder_model.onnx", "onnx/decoder_model_merged.onnx", "onnx/encoder_model_q4.onnx"});
  auto layout = find_layout(whole.path());
  ASSERT_TRUE(layout.ok()) << layout.status().to_string();
  EXPECT_EQ(layout->find(Role::kEncoder)->name, "encoder_model");
  EXPECT_EQ(layout->missing, "");
  layout = find_layout(whole.path(), "q4");
  ASSERT_TRUE(layout.ok());
  EXPECT_THAT(layout->missing, HasSubstr("decoder_model_merged_q4.onnx"));

  Folder decoders({"decoder_model_merged.onnx"});
  decoders.write("config.json", R"({"is_encoder_decoder": true})");
  EXPECT_THAT(find_layout(decoders.path())->missing, HasSubstr("encoder_model.onnx"));

  const Folder no_first({"encoder_model.onnx", "decoder_with_past_model.onnx"});
  EXPECT_THAT(find_layout(no_first.path())->missing, HasSubstr("decoder_model.onnx"));
}

TEST(Layouts, TheDefaultDtypeIsTheMostExactCompleteOne) {
  const Folder f(
      {"onnx/encoder_model.onnx", "onnx/encoder_model_q4.onnx", "onnx/decoder_model_merged_q4.onnx"});
  auto layout = find_layout(f.path());
  ASSERT_TRUE(layout.ok());
  EXPECT_EQ(layout->dtype, "q4");
}

TEST(Layouts, UnusualNames) {
  const Folder one({"bert-tiny.onnx"});
  EXPECT_EQ(find_layout(one.path())->main()->name, "bert-tiny");
  const Folder two({"a.onnx", "b.onnx"});
  auto layout = find_layout(two.path());
  ASSERT_FALSE(layout.ok());
  EXPECT_THAT(layout.status().message(), HasSubstr("a.onnx, b.onnx"));
  EXPECT_EQ(find_layout(two.path("b.onnx"))->main()->name, "b");
  const Folder none({"config.json"});
  EXPECT_THAT(find_layout(none.path()).status().message(), HasSubstr("genai_config.json"));
}

constexpr const char* kGenai = R"({"model": {"type": "whisper", "eos_token_id": [2, 7], "context_length": 64,
  "decoder": {"filename": "decoder.onnx", "head_size": 16, "num_hidden_layers": 2,
    "inputs": {"input_ids": "ids", "past_key_names": "past_key_self_%d", "cross_past_key_names": "past_key_cross_%d"},
    "outputs": {"logits": "scores", "present_key_names": "present_key_self_%d"}},
  "encoder": {"filename": "encoder.onnx", "num_hidden_layers": 2, "inputs": {"audio_features": "audio_features"},
    "outputs": {"encoder_hidden_states": "hidden_states", "cross_present_key_names": "present_key_cross_%d"}}}})";

TEST(Layouts, GenaiConfigNamesEverything) {
  Folder f({"encoder.onnx", "decoder.onnx"});
  f.write("genai_config.json", kGenai);
  auto layout = find_layout(f.path());
  ASSERT_TRUE(layout.ok()) << layout.status().to_string();
  const Component& decoder = *layout->find(Role::kDecoder);
  EXPECT_EQ(decoder.head_size, 16);
  EXPECT_EQ(decoder.usual_names.at("ids"), "input_ids");
  EXPECT_EQ(decoder.usual_names.at("scores"), "logits");
  EXPECT_EQ(decoder.usual_names.at("past_key_self_1"), "past_key_values.1.decoder.key");
  EXPECT_EQ(decoder.usual_names.at("present_key_self_0"), "present.0.decoder.key");
  const Component& encoder = *layout->find(Role::kEncoder);
  EXPECT_EQ(encoder.usual_names.at("present_key_cross_1"), decoder.usual_names.at("past_key_cross_1"));
  EXPECT_EQ(encoder.usual_names.at("hidden_states"), "last_hidden_state");
  auto text = layouts::genai_text(f.path());
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(text->eos_token_ids, ElementsAre(2, 7));
  EXPECT_EQ(text->context_length, 64);
}

TEST(Layouts, GenaiConfigIsNotTrusted) {
  Folder f({"encoder.onnx", "decoder.onnx"});
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string text = kGenai;
    text.replace(text.find(from), from.size(), to);
    f.write("genai_config.json", text);
    return find_layout(f.path()).status().to_string();
  };
  EXPECT_THAT(refused("decoder.onnx", "../decoder.onnx"), HasSubstr("outside"));
  EXPECT_THAT(refused("decoder.onnx", "absent.onnx"), HasSubstr("missing"));
  EXPECT_THAT(refused("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 4000000000"),
              HasSubstr("num_hidden_layers"));
  EXPECT_THAT(refused("past_key_self_%d", "past_key_self_%s"), HasSubstr("%d"));
  EXPECT_THAT(refused("\"decoder\": {", "\"decoder\": [{"), HasSubstr("model"));
}

}  // namespace
}  // namespace decant::app
