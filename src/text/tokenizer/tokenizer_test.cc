#include "text/tokenizer/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "text/tokenizer/utf8.h"

namespace decant::text {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kFolder = std::string(DECANT_SOURCE_DIR) + "/testdata/tokenizers/";

std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A byte-level vocabulary: "a" 0, "b" 1, "ab" 2, blank 3, " ab" 4, then the bytes of U+1F600 and an added
/// token.
std::string tiny(const std::string& changes = "{}") {
  json j = json::parse(R"({
    "added_tokens": [{"id": 9, "content": "<end>", "single_word": false, "lstrip": false, "rstrip": false,
                      "normalized": false, "special": true}],
    "normalizer": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
    "post_processor": null,
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "\u0120": 3, "\u0120ab": 4, "\u00f0": 5, "\u0141": 6,
              "\u013a": 7, "\u0122": 8}, "merges": ["a b", "\u0120 ab"]}})");
  j.merge_patch(json::parse(changes));
  return j.dump();
}

Tokenizer load(const std::string& text) {
  auto tokenizer = Tokenizer::from_json(text, "tiny.json");
  if (!tokenizer.ok()) throw std::runtime_error(tokenizer.status().to_string());
  return *std::move(tokenizer);
}

TEST(Tokenizer, MergesWordsAndFindsAddedTokens) {
  const Tokenizer t = load(tiny());
  EXPECT_THAT(*t.encode("ab ab<end>ba", true), ElementsAre(2, 4, 9, 1, 0));
  EXPECT_EQ(t.decode(std::vector<int32_t>{2, 4, 9, 1, 0}), "ab ab<end>ba");
  EXPECT_EQ(t.decode(std::vector<int32_t>{2, 4, 9, 1, 0, 77, -1}, true), "ab abba");
  EXPECT_EQ(t.vocab_size(), 10u);
  EXPECT_EQ(t.id_limit(), 10);
  EXPECT_EQ(t.token_to_id("<end>"), 9);
  EXPECT_EQ(t.id_to_token(4), "\u0120ab");
  EXPECT_EQ(t.id_to_token(10), std::nullopt);
  EXPECT_TRUE(t.is_special(9));
  EXPECT_TRUE(t.encode("", true)->empty());
}

TEST(Tokenizer, SpecialTokensAsText) {
  const Tokenizer t = load(tiny());
  auto encoding = t.encode("a<end>b", EncodeOptions{.special_as_text = true});
  ASSERT_TRUE(encoding.ok());
  EXPECT_THAT(encoding->ids, ElementsAre(0, 1));  // the rest has no token
}

TEST(Tokenizer, OffsetsAreCodePoints) {
  const Tokenizer t = load(tiny());
  auto encoding = t.encode("ab \U0001f600", EncodeOptions{.offsets = true});
  ASSERT_TRUE(encoding.ok());
  EXPECT_THAT(encoding->ids, ElementsAre(2, 3, 5, 6, 7, 8));
  EXPECT_THAT(encoding->offsets, ElementsAre(std::pair(0u, 2u), std::pair(2u, 3u), std::pair(3u, 4u),
                                             std::pair(3u, 4u), std::pair(3u, 4u), std::pair(3u, 4u)));
}

TEST(DecodeStream, HoldsUnfinishedCharacters) {
  const Tokenizer t = load(tiny());
  DecodeStream stream(t);
  EXPECT_EQ(stream.push(2), "ab");
  EXPECT_EQ(stream.push(5), "");
  EXPECT_EQ(stream.push(6), "");
  EXPECT_EQ(stream.push(7), "");
  EXPECT_EQ(stream.push(8), "\U0001f600");
  EXPECT_EQ(stream.push(9), "");  // special
  EXPECT_EQ(stream.push(5), "");
  EXPECT_EQ(stream.push(0),
            "\ufffd"
            "a");
  EXPECT_EQ(stream.push(5), "");
  EXPECT_EQ(stream.flush(), "\ufffd");
  EXPECT_EQ(stream.flush(), "");
}

void expect_error(const std::string& text, StatusCode code, const std::string& part) {
  auto result = Tokenizer::from_json(text, "tiny.json");
  ASSERT_FALSE(result.ok()) << part;
  EXPECT_EQ(result.status().code(), code) << result.status().to_string();
  EXPECT_THAT(result.status().message(), HasSubstr("tiny.json"));
  EXPECT_THAT(result.status().message(), HasSubstr(part));
}

TEST(Tokenizer, RefusesWhatItDoesNotKnowByName) {
  expect_error("{", StatusCode::kInvalidModel, "JSON");
  expect_error("[]", StatusCode::kInvalidModel, "object");
  expect_error("{}", StatusCode::kInvalidModel, "model");
  expect_error(tiny(R"({"normalizer": {"type": "Quux"}})"), StatusCode::kUnsupported,
               "normalizer: component 'Quux'");
  expect_error(tiny(R"({"pre_tokenizer": {"type": "UnicodeScripts"}})"), StatusCode::kUnsupported,
               "'UnicodeScripts'");
  expect_error(tiny(R"({"decoder": {"type": "CTC"}})"), StatusCode::kUnsupported, "'CTC'");
  expect_error(tiny(R"({"post_processor": {"type": "X"}})"), StatusCode::kUnsupported, "'X'");
  expect_error(tiny(R"({"model": {"type": "Unigram"}})"), StatusCode::kUnsupported, "'Unigram'");
  expect_error(tiny(R"({"model": {"merges": ["a b c"]}})"), StatusCode::kInvalidModel, "'a b c'");
  expect_error(tiny(R"({"model": {"merges": ["a a"]}})"), StatusCode::kInvalidModel, "'aa'");
  expect_error(tiny(R"({"model": {"vocab": {"z": 4000000000}}})"), StatusCode::kInvalidModel, "'z'");
  expect_error(tiny(R"({"model": {"vocab": {"z": -1}}})"), StatusCode::kInvalidModel, "'z'");
  expect_error(tiny(R"({"model": {"vocab": {"z": 0}}})"), StatusCode::kInvalidModel, "share id 0");
  expect_error(tiny(R"({"model": {"unk_token": "?"}})"), StatusCode::kInvalidModel, "'?'");
  expect_error(
      tiny(R"({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a"}, "behavior": "Isolated"}})"),
      StatusCode::kInvalidModel, "(a");
}

TEST(Tokenizer, NestedSequencesAreBounded) {
  std::string nested = R"({"type": "NFC"})";
  for (int i = 0; i < 40; ++i) nested = R"({"type": "Sequence", "normalizers": [)" + nested + "]}";
  expect_error(tiny(R"({"normalizer": )" + nested + "}"), StatusCode::kUnsupported, "nested");
}

TEST(Tokenizer, AMillionEqualCharactersAreNoProblem) {
  const Tokenizer t =
      load(tiny(R"({"model": {"vocab": {"aa": 20, "aaaa": 21}, "merges": ["a a", "aa aa"]}})"));
  auto ids = t.encode(std::string(1000000, 'a'), true);
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(ids->size(), 250000u);
}

/// Every golden line: ids, offsets, decoding both ways, streaming, and the same from the rewritten
/// tokenizer.json.
class Goldens : public testing::TestWithParam<const char*> {};

TEST_P(Goldens, Agree) {
  const std::string name = GetParam();
  std::map<std::string, std::string> texts;
  std::map<std::string, std::string> shown;
  const json cases = json::parse(slurp(kFolder + "cases.json"));
  for (const auto& c : cases["cases"]) texts[c["c"]] = shown[c["c"]] = c["text"];
  for (const auto& c : cases["bytes"]) {
    std::string bytes;
    const std::string hex = c["hex"];
    for (size_t i = 0; i + 1 < hex.size(); i += 2)
      bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    texts[c["c"]] = bytes;
    shown[c["c"]] = c["text"];
  }
  const Tokenizer first = load(slurp(kFolder + name + ".json"));
  const Tokenizer rewritten = load(first.to_json());
  std::ifstream goldens(kFolder + "goldens.jsonl");
  size_t lines = 0;
  for (std::string line; std::getline(goldens, line);) {
    const json g = json::parse(line);
    if (g["t"] != name) continue;
    ++lines;
    const std::string id = g["c"];
    const auto ids = g["ids"].get<std::vector<int32_t>>();
    const auto full = g.value("sp", ids);
    for (const Tokenizer* t : {&first, &rewritten}) {
      SCOPED_TRACE(name + " " + id);
      EXPECT_EQ(*t->encode(texts[id], false), ids);
      EXPECT_EQ(*t->encode(texts[id], true), full);
      auto encoding = t->encode(texts[id], EncodeOptions{.add_special = false, .offsets = true});
      EXPECT_EQ(encoding->ids, ids);
      std::vector<uint32_t> offsets;
      for (const auto& [begin, end] : encoding->offsets) offsets.insert(offsets.end(), {begin, end});
      EXPECT_EQ(offsets, g["off"].get<std::vector<uint32_t>>());
      if (g.contains("pl")) {
        EXPECT_EQ(t->encode(texts[id], EncodeOptions{.add_special = false, .special_as_text = true})->ids,
                  g["pl"].get<std::vector<int32_t>>());
      }
      const std::string text = g.value("d", shown[id]);
      EXPECT_EQ(t->decode(full, true), text);
      EXPECT_EQ(t->decode(full, false), g.value("k", text));
      DecodeStream stream(*t);
      std::string streamed;
      for (const int32_t token : full) {
        const std::string piece = stream.push(token);
        EXPECT_TRUE(bpe::is_valid_utf8(piece));
        streamed += piece;
      }
      EXPECT_EQ(streamed + stream.flush(), text);
    }
  }
  EXPECT_GT(lines, 200u);
}

INSTANTIATE_TEST_SUITE_P(Synthetic, Goldens,
                         testing::Values("roberta", "metaspace_first", "prepend_replace", "added_tokens",
                                         "whole_text", "ignore_merges", "normalized_splits", "suffix"),
                         [](const auto& test) { return std::string(test.param); });

TEST(Tokenizer, IsThreadSafe) {
  const Tokenizer t = load(slurp(kFolder + "roberta.json"));
  const std::string text = slurp(kFolder + "cases.json");
  const auto expected = *t.encode(text, true);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { EXPECT_EQ(*t.encode(text, true), expected); });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace decant::text
