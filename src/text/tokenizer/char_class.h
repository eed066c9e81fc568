#pragma once

#include <cstdint>

namespace decant::text::bpe {

/// Bits of the character classes that pre-tokenizer patterns name, from Unicode general categories.
enum CharClass : uint8_t {
  kLetter = 1,        ///< \p{L}
  kNumber = 2,        ///< \p{N}
  kSpace = 4,         ///< \s: White_Space
  kUpperLike = 8,     ///< [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]
  kLowerLike = 16,    ///< [\p{Ll}\p{Lm}\p{Lo}\p{M}]
  kNewline = 32,      ///< CR and LF
  kPunctuation = 64,  ///< \p{P} and the ASCII symbols
  kWord = 128,        ///< \w: alphabetic, marks, decimal digits, connectors, joiners
};

/// Classes of the code points below this; the rest are looked up one by one.
inline constexpr char32_t kClassTableSize = 0x20000;
/// The table, built on first use. Thread-safe.
const uint8_t* char_class_table();
uint8_t slow_char_class(char32_t c);

inline uint8_t char_class(const uint8_t* table, char32_t c) {
  return c < kClassTableSize ? table[c] : slow_char_class(c);
}
inline uint8_t char_class(char32_t c) { return char_class(char_class_table(), c); }

}  // namespace decant::text::bpe
