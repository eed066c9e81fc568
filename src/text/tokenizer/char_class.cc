#include "text/tokenizer/char_class.h"

#include <utf8proc.h>

#include <vector>

namespace decant::text::bpe {
namespace {

bool is_white_space(char32_t c) {
  return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

bool is_ascii_punctuation(char32_t c) {
  return (c >= 0x21 && c <= 0x2f) || (c >= 0x3a && c <= 0x40) || (c >= 0x5b && c <= 0x60) ||
         (c >= 0x7b && c <= 0x7e);
}

uint8_t category_bits(utf8proc_category_t category) {
  switch (category) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LT:
      return kLetter | kUpperLike | kWord;
    case UTF8PROC_CATEGORY_LL:
      return kLetter | kLowerLike | kWord;
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return kLetter | kUpperLike | kLowerLike | kWord;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
      return kUpperLike | kLowerLike | kWord;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
      return kNumber | kWord;
    case UTF8PROC_CATEGORY_NO:
      return kNumber;
    case UTF8PROC_CATEGORY_PC:
      return kPunctuation | kWord;
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
      return kPunctuation;
    default:
      return 0;
  }
}

}  // namespace

uint8_t slow_char_class(char32_t c) {
  uint8_t bits = category_bits(utf8proc_category(static_cast<utf8proc_int32_t>(c)));
  if (is_white_space(c)) bits |= kSpace;
  if (c == '\r' || c == '\n') bits |= kNewline;
  if (is_ascii_punctuation(c)) bits |= kPunctuation;
  if (c == 0x200c || c == 0x200d || (c >= 0x24b6 && c <= 0x24e9)) bits |= kWord;
  return bits;
}

const uint8_t* char_class_table() {
  static const std::vector<uint8_t> table = [] {
    std::vector<uint8_t> t(kClassTableSize);
    for (char32_t c = 0; c < kClassTableSize; ++c) t[c] = slow_char_class(c);
    return t;
  }();
  return table.data();
}

}  // namespace decant::text::bpe
