#include "text/tokenizer/normalizer.h"

#include <gtest/gtest.h>

#include "text/tokenizer/utf8.h"

namespace decant::text::bpe {
namespace {

AlignedText aligned(std::string_view text) {
  AlignedText out;
  out.aligned = true;
  uint32_t position = 0;
  for (size_t i = 0; i < text.size(); ++position) {
    const size_t n = utf8_length(text[i]);
    out.append(text.substr(i, n), {position, position + 1});
    i += n;
  }
  return out;
}

std::string normalized(NormalForm form, std::string_view text) {
  AlignedText a = aligned(text);
  normalize_unicode(form, a);
  EXPECT_EQ(a.spans.size(), a.text.size());
  return a.text;
}

TEST(UnicodeNormalize, Forms) {
  EXPECT_EQ(normalized(NormalForm::kNfc, "e\u0301 o\u0323\u0308 \u212b"), "\u00e9 \u1ecd\u0308 \u00c5");
  EXPECT_EQ(normalized(NormalForm::kNfd, "\u00e9\ud55c"), "e\u0301\u1112\u1161\u11ab");
  EXPECT_EQ(normalized(NormalForm::kNfc, "\u1112\u1161\u11ab"), "\ud55c");
  EXPECT_EQ(normalized(NormalForm::kNfkc, "\ufb01 \u2460 \u338f"), "fi 1 kg");
  EXPECT_EQ(normalized(NormalForm::kNfkd, "\u00bd"), "1\u20442");
  EXPECT_EQ(normalized(NormalForm::kNfc, "a\u0308\u0304"), "\u01df");
  EXPECT_EQ(normalized(NormalForm::kNfc, "\u0301x"), "\u0301x");
  EXPECT_EQ(normalized(NormalForm::kNfc, "\u09c7\u09be"), "\u09cb");  // the second part has combining class 0
  EXPECT_EQ(normalized(NormalForm::kNfc, "a\u0334\u0301"), "\u00e1\u0334");
}

TEST(UnicodeNormalize, LeavesCharactersNewerThanTheReferenceTables) {
  EXPECT_EQ(normalized(NormalForm::kNfkc, "\u32ff"), "\u32ff");
}

TEST(UnicodeNormalize, SpansFollowCharacters) {
  AlignedText text = aligned("xe\u0301y");
  normalize_unicode(NormalForm::kNfc, text);
  ASSERT_EQ(text.text, "x\u00e9y");
  EXPECT_EQ(text.spans[1].begin, 1u);
  EXPECT_EQ(text.spans[1].end, 2u);
  EXPECT_EQ(text.spans[3].begin, 3u);
}

TEST(Normalizer, Steps) {
  AlignedText text = aligned("a b");
  prepend("\u2581", text);
  replace_literal(" ", "\u2581", text);
  EXPECT_EQ(text.text, "\u2581a\u2581b");
  EXPECT_EQ(text.spans.size(), text.text.size());
  EXPECT_EQ(text.spans[0].end, 1u);
  AlignedText upper = aligned("\u0130A\u03a3");
  lowercase(upper);
  EXPECT_EQ(upper.text, "i\u0307a\u03c3");
  AlignedText accents = aligned("e\u0301x");
  strip_accents(accents);
  EXPECT_EQ(accents.text, "ex");
}

}  // namespace
}  // namespace decant::text::bpe
