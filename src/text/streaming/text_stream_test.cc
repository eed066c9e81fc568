#include "text/streaming/text_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "text/streaming/stop_tokens.h"

namespace decant::text {
namespace {

TEST(TextStream, PassesTextOnWithoutStopStrings) {
  TextStream s = *TextStream::create({});
  EXPECT_EQ(s.push("ab"), "ab");
  EXPECT_EQ(s.push("ü"), "ü");
  EXPECT_EQ(s.finish(), "");
}

TEST(TextStream, HoldsBackAStopStringSpreadOverPieces) {
  TextStream s = *TextStream::create({"<end>"});
  EXPECT_EQ(s.push("hi <"), "hi ");
  EXPECT_EQ(s.push("en"), "");
  EXPECT_EQ(s.push("d"), "");
  EXPECT_EQ(s.push("> more"), "");
  EXPECT_EQ(s.matched(), 0u);
  EXPECT_EQ(s.push("x"), "");
  EXPECT_EQ(s.finish(), "");
}

TEST(TextStream, ReleasesANearMissInFull) {
  TextStream s = *TextStream::create({"<end>"});
  EXPECT_EQ(s.push("<en"), "");
  EXPECT_EQ(s.push("<e"), "<en");
  EXPECT_EQ(s.push("at"), "<eat");
  EXPECT_EQ(s.push("<"), "");
  EXPECT_EQ(s.finish(), "<");
  EXPECT_FALSE(s.stopped());
}

TEST(TextStream, TheEarliestStopStringCountsAndThenTheLongest) {
  TextStream s = *TextStream::create({"cd", "b", "bc"});
  EXPECT_EQ(s.push("abcd"), "a");
  EXPECT_EQ(s.matched(), 2u);
}

TEST(TextStream, RefusesAnEmptyStopString) { EXPECT_FALSE(TextStream::create({"a", ""}).ok()); }

// Random texts over few letters, so that stop strings and near misses are common.
TEST(TextStream, KeepsItsInvariantsOnRandomTexts) {
  const std::string alphabet[] = {"a", "b", "é", "漢", "😀"};
  std::mt19937 random(1);
  const auto text_of = [&](size_t longest) {
    std::string text;
    for (size_t n = 1 + random() % longest; n > 0; --n) text += alphabet[random() % 5];
    return text;
  };
  for (int round = 0; round < 10000; ++round) {
    std::vector<std::string> stops;
    for (size_t n = random() % 4; n > 0; --n) stops.push_back(text_of(4));
    size_t longest = 0;
    for (const auto& stop : stops) longest = std::max(longest, stop.size());
    TextStream s = *TextStream::create(stops);
    std::string whole, shown;
    for (int piece = 0; piece < 12 && !s.stopped(); ++piece) {
      const std::string text = text_of(3);
      whole += text;
      const std::string out = s.push(text);
      ASSERT_TRUE(out.empty() || (static_cast<unsigned char>(out[0]) & 0xC0) != 0x80)
          << "cut inside a character";
      shown += out;
      if (!s.stopped()) {
        ASSERT_EQ(shown.size() + s.held_bytes(), whole.size());
        ASSERT_LT(s.held_bytes(), std::max<size_t>(longest, 1));
      }
    }
    size_t first = std::string::npos;
    for (const auto& stop : stops) first = std::min(first, whole.find(stop));
    ASSERT_EQ(s.stopped(), first != std::string::npos);
    shown += s.finish();
    ASSERT_EQ(shown, whole.substr(0, first));
    if (s.stopped()) {
      ASSERT_EQ(whole.find(stops[*s.matched()]), first);
    }
  }
}

TEST(StopTokens, IsTheUnionOfItsSources) {
  StopTokens stops;
  const std::vector<int32_t> list = {128001, 128009};
  stops.add(list, "generation_config");
  stops.add(128009, "tokenizer");
  stops.add(-1, "config");
  stops.add(2, "gguf");
  ASSERT_EQ(stops.entries().size(), 3u);
  EXPECT_EQ(stops.entries()[0].id, 2);
  EXPECT_EQ(stops.entries()[2].sources, "generation_config, tokenizer");
  for (int32_t id : {2, 128001, 128009}) EXPECT_TRUE(stops.contains(id));
  EXPECT_FALSE(stops.contains(3));
  const std::vector<int32_t> own = {7};
  stops.replace(own);
  EXPECT_FALSE(stops.contains(2));
  EXPECT_TRUE(stops.contains(7));
}

}  // namespace
}  // namespace decant::text
