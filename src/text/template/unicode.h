#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace decant::text {

/// Decodes the code point at `text[offset]` and moves `offset` behind it. A byte that starts no valid
/// sequence comes back as U+FFFD and moves by one. Precondition: offset < text.size().
char32_t next_code_point(std::string_view text, size_t& offset);

/// The code point that ends at `end`; moves `end` to its start. Precondition: end > 0.
char32_t previous_code_point(std::string_view text, size_t& end);

void append_utf8(std::string& out, char32_t c);
size_t count_code_points(std::string_view text);

/// Byte offset of the code point number `index`; text.size() when there are fewer.
size_t byte_offset(std::string_view text, size_t index);

/// Python's str.isspace, isalpha, isalnum, isdigit, isdecimal, isupper, islower, isprintable for one code
/// point.
bool is_space(char32_t c);
bool is_alpha(char32_t c);
bool is_alnum(char32_t c);
bool is_digit(char32_t c);
bool is_decimal(char32_t c);
bool is_upper(char32_t c);
bool is_lower(char32_t c);
bool is_printable(char32_t c);

/// Case mappings of whole texts, with the one-to-many ones Python applies to Latin letters and ligatures.
std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
std::string to_title(std::string_view text);
std::string case_fold(std::string_view text);

/// Parts of `text` without the code points at its ends that are in `chars`; white space when `chars` is null.
enum class StripSide { kLeft, kRight, kBoth };
std::string_view strip(std::string_view text, StripSide side, const std::string_view* chars = nullptr);

}  // namespace decant::text
