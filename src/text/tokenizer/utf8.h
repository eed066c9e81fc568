#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace decant::text::bpe {

/// One step over bytes that claim to be UTF-8.
struct Utf8Step {
  enum Kind : uint8_t {
    kValid,       ///< `length` bytes form one code point
    kInvalid,     ///< `length` bytes are a maximal subpart of an ill-formed sequence (Unicode, D93b)
    kIncomplete,  ///< the text ends inside a sequence that more bytes could complete
  };
  Kind kind;
  uint8_t length;
};

/// Precondition: `bytes` is not empty.
Utf8Step utf8_step(std::string_view bytes);

bool is_valid_utf8(std::string_view bytes);

/// Replaces every maximal ill-formed subpart by U+FFFD.
std::string replace_invalid_utf8(std::string_view bytes);

/// Appends the bytes to `out`, ill-formed subparts as U+FFFD, and returns how many bytes at the end were left
/// alone because they may still be completed (0 to 3).
size_t append_lossy(std::string_view bytes, std::string& out);

void append_utf8(std::string& out, char32_t code_point);

/// Length of the sequence that starts with `lead` in valid UTF-8.
inline size_t utf8_length(char lead) {
  const auto b = static_cast<unsigned char>(lead);
  return b < 0x80 ? 1 : b < 0xe0 ? 2 : b < 0xf0 ? 3 : 4;
}

/// First code point of valid, non-empty UTF-8; `length` receives its bytes.
inline char32_t decode_valid(const char* p, size_t& length) {
  const auto b = [p](int i) { return static_cast<char32_t>(static_cast<unsigned char>(p[i])); };
  const char32_t lead = b(0);
  if (lead < 0x80) return length = 1, lead;
  if (lead < 0xe0) return length = 2, (lead & 0x1f) << 6 | (b(1) & 0x3f);
  if (lead < 0xf0) return length = 3, (lead & 0x0f) << 12 | (b(1) & 0x3f) << 6 | (b(2) & 0x3f);
  return length = 4, (lead & 0x07) << 18 | (b(1) & 0x3f) << 12 | (b(2) & 0x3f) << 6 | (b(3) & 0x3f);
}

/// Start of the code point that ends before `end`; precondition: end > 0, valid UTF-8.
inline size_t previous_start(std::string_view text, size_t end) {
  do --end;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80);
  return end;
}

}  // namespace decant::text::bpe
