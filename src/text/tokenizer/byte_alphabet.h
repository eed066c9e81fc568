#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace decant::text::bpe {

/// GPT-2's printable stand-ins for bytes: printable Latin-1 bytes stand for themselves, the other 68 follow
/// in order from U+0100 (a space is U+0120).
char32_t byte_to_char(uint8_t byte);
/// The byte a character stands for, or -1.
int char_to_byte(char32_t c);

/// Appends the stand-in of each byte, in UTF-8.
void append_byte_alphabet(std::string_view bytes, std::string& out);
/// Appends the bytes that a token's characters stand for. A token with any other character is appended as it
/// is.
void append_token_bytes(std::string_view token, std::string& out);

}  // namespace decant::text::bpe
