#include "text/tokenizer/known_patterns.h"

#include <gtest/gtest.h>

#include <random>

#include "text/tokenizer/char_class.h"
#include "text/tokenizer/regex.h"
#include "text/tokenizer/utf8.h"

namespace decant::text::bpe {
namespace {

constexpr KnownPattern kAll[] = {KnownPattern::kGpt2, KnownPattern::kCl100k, KnownPattern::kQwen2,
                                 KnownPattern::kO200k, KnownPattern::kTekken};

void expect_same_as_regex(KnownPattern pattern, const Regex& regex, const std::string& text) {
  std::vector<Range> ours;
  split_known(pattern, text, 0, ours);
  std::vector<Match> matches;
  ASSERT_TRUE(regex.find_all(text, 0, matches).ok());
  ASSERT_EQ(ours.size(), matches.size()) << text;
  for (size_t i = 0; i < ours.size(); ++i) {
    ASSERT_TRUE(matches[i].is_match) << text;
    ASSERT_EQ(ours[i].begin, matches[i].range.begin) << text;
    ASSERT_EQ(ours[i].end, matches[i].range.end) << text;
  }
}

/// Short texts over an alphabet in which every class and every special character of the patterns is frequent.
TEST(KnownPatterns, AgreeWithOnigurumaOnRandomTexts) {
  const std::vector<std::string> alphabet = {" ",
                                             " ",
                                             "\n",
                                             "\r",
                                             "\t",
                                             "\xc2\xa0",
                                             "\xe3\x80\x80",
                                             "'",
                                             "s",
                                             "S",
                                             "t",
                                             "re",
                                             "LL",
                                             "'d",
                                             "'VE",
                                             "\xc5\xbf",
                                             "a",
                                             "Q",
                                             "\xc3\xa9",
                                             "\xc3\x89",
                                             "\xc7\x85",
                                             "\xca\xb0",
                                             "\xe4\xbd\xa0",
                                             "\xcc\x81",
                                             "\xe0\xa4\xbf",
                                             "1",
                                             "22",
                                             "\xd9\xa3",
                                             "\xc2\xbd",
                                             "/",
                                             ".",
                                             "!",
                                             "\xf0\x9f\x98\x80",
                                             "\xe2\x80\x8d",
                                             "\xc2\x85",
                                             "\xe2\x80\xa8",
                                             std::string(1, '\0'),
                                             "\xf3\xa0\x84\x80"};
  std::mt19937 random(7);
  for (const KnownPattern pattern : kAll) {
    auto regex = Regex::compile(std::string(pattern_text(pattern)));
    ASSERT_TRUE(regex.ok()) << regex.status().to_string();
    for (int i = 0; i < 4000; ++i) {
      std::string text;
      for (auto n = random() % 24; n > 0; --n) text += alphabet[random() % alphabet.size()];
      expect_same_as_regex(pattern, *regex, text);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(KnownPatterns, ClassesAgreeWithOniguruma) {
  const std::pair<const char*, uint8_t> classes[] = {{R"(\p{L}+)", kLetter},
                                                     {R"(\p{N}+)", kNumber},
                                                     {R"(\s+)", kSpace},
                                                     {R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+)", kUpperLike},
                                                     {R"([\p{Ll}\p{Lm}\p{Lo}\p{M}]+)", kLowerLike}};
  std::string text;
  std::vector<char32_t> points;
  for (char32_t c = 0; c < 0x3400; ++c) {
    points.push_back(c);
    append_utf8(text, c);
  }
  for (const auto& [pattern, bit] : classes) {
    auto regex = Regex::compile(pattern);
    ASSERT_TRUE(regex.ok());
    std::vector<Match> matches;
    ASSERT_TRUE(regex->find_all(text, 0, matches).ok());
    // Libraries of neighbouring Unicode versions may differ in characters assigned since.
    size_t different = 0;
    for (const Match& m : matches) {
      for (size_t i = m.range.begin, n = 0; i < m.range.end; i += n) {
        const char32_t c = decode_valid(text.data() + i, n);
        if (((char_class(c) & bit) != 0) != m.is_match) ++different;
      }
    }
    EXPECT_LE(different, 40u) << pattern;
  }
}

TEST(KnownPatterns, LongRunsAreLinear) {
  for (const KnownPattern pattern : kAll) {
    for (const char* unit : {"A", " ", "\n", "a", "1", ".", " \n", "\xcc\x81"}) {
      std::string text;
      while (text.size() < 300000) text += unit;
      std::vector<Range> out;
      split_known(pattern, text, 0, out);
      ASSERT_FALSE(out.empty());
      EXPECT_EQ(out.back().end, text.size());
    }
  }
}

TEST(Regex, ReportsBadPatternsAndGivesUpOnExplosions) {
  EXPECT_EQ(Regex::compile("(unclosed").status().code(), StatusCode::kInvalidModel);
  auto regex = Regex::compile("(a+)+$");
  ASSERT_TRUE(regex.ok());
  std::vector<Match> matches;
  EXPECT_EQ(regex->find_all(std::string(40, 'a') + "!", 0, matches).code(), StatusCode::kOutOfRange);
}

TEST(Regex, CoversTheTextAndStepsOverEmptyMatches) {
  auto regex = Regex::compile("x*");
  ASSERT_TRUE(regex.ok());
  std::vector<Match> matches;
  ASSERT_TRUE(regex->find_all("axxb", 0, matches).ok());
  size_t at = 0;
  for (const Match& m : matches) {
    EXPECT_EQ(m.range.begin, at);
    at = m.range.end;
  }
  EXPECT_EQ(at, 4u);
}

}  // namespace
}  // namespace decant::text::bpe
