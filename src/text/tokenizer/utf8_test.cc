#include "text/tokenizer/utf8.h"

#include <gtest/gtest.h>

namespace decant::text::bpe {
namespace {

const std::string kFffd = "\xef\xbf\xbd";

TEST(Utf8, ReplacesMaximalSubparts) {
  EXPECT_EQ(replace_invalid_utf8("plain"), "plain");
  EXPECT_EQ(replace_invalid_utf8("\xff"), kFffd);
  EXPECT_EQ(replace_invalid_utf8("a\x80"
                                 "b"),
            "a" + kFffd + "b");
  EXPECT_EQ(replace_invalid_utf8("\xe2\x82"), kFffd);
  EXPECT_EQ(replace_invalid_utf8("\xf0\x9f\x98"
                                 "x"),
            kFffd + "x");
  EXPECT_EQ(replace_invalid_utf8("\xc0\xaf"), kFffd + kFffd);
  EXPECT_EQ(replace_invalid_utf8("\xed\xa0\x80"), kFffd + kFffd + kFffd);
  EXPECT_EQ(replace_invalid_utf8("\xf4\x90\x80\x80"), kFffd + kFffd + kFffd + kFffd);
  EXPECT_EQ(replace_invalid_utf8("x\xc3(\xa9y"), "x" + kFffd + "(" + kFffd + "y");
}

TEST(Utf8, LeavesACharacterThatMayStillBeCompleted) {
  std::string out;
  EXPECT_EQ(append_lossy("a\xf0\x9f\x98", out), 3u);
  EXPECT_EQ(out, "a");
  out.clear();
  EXPECT_EQ(append_lossy("\xf4\x90", out), 0u);
  EXPECT_EQ(out, kFffd + kFffd);
}

TEST(Utf8, RoundTripsCodePoints) {
  for (char32_t c :
       {U'\0', U'\x7f', U'\x80', U'\u07ff', U'\u0800', U'\uffff', U'\U00010000', U'\U0010ffff'}) {
    std::string s;
    append_utf8(s, c);
    size_t n = 0;
    EXPECT_EQ(decode_valid(s.data(), n), c);
    EXPECT_EQ(n, s.size());
    EXPECT_TRUE(is_valid_utf8(s));
  }
}

}  // namespace
}  // namespace decant::text::bpe
