#include "text/template/unicode.h"

#include <utf8proc.h>

#include <algorithm>

namespace decant::text {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

// Letters whose upper case is more than one code point (Unicode SpecialCasing.txt, unconditional, common
// ones).
std::string_view special_upper(char32_t c) {
  switch (c) {
    case 0x00DF:
      return "SS";
    case 0x0149:
      return "ʼN";
    case 0x01F0:
      return "J̌";
    case 0xFB00:
      return "FF";
    case 0xFB01:
      return "FI";
    case 0xFB02:
      return "FL";
    case 0xFB03:
      return "FFI";
    case 0xFB04:
      return "FFL";
    case 0xFB05:
    case 0xFB06:
      return "ST";
    default:
      return {};
  }
}

bool is_cased(char32_t c) { return is_upper(c) || is_lower(c) || category(c) == UTF8PROC_CATEGORY_LT; }

void append_lower(std::string& out, char32_t c) {
  if (c == 0x0130) {
    out += "i̇";
  } else {
    append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
  }
}

// A capital sigma after a cased letter and before none is written as the final form.
bool is_final_sigma(std::string_view text, size_t start, size_t after) {
  if (start == 0) return false;
  size_t before = start;
  if (!is_cased(previous_code_point(text, before))) return false;
  return after >= text.size() || !is_cased(next_code_point(text, after));
}

}  // namespace

char32_t next_code_point(std::string_view text, size_t& offset) {
  const auto lead = static_cast<unsigned char>(text[offset]);
  if (lead < 0x80) {
    ++offset;
    return lead;
  }
  utf8proc_int32_t c = 0;
  const auto n =
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data() + offset),
                       static_cast<utf8proc_ssize_t>(std::min<size_t>(4, text.size() - offset)), &c);
  if (n <= 0) {
    ++offset;
    return kReplacement;
  }
  offset += static_cast<size_t>(n);
  return static_cast<char32_t>(c);
}

char32_t previous_code_point(std::string_view text, size_t& end) {
  size_t start = end - 1;
  while (start > 0 && end - start < 4 && is_continuation(text[start])) --start;
  size_t next = start;
  const char32_t c = next_code_point(text, next);
  if (next != end) {
    --end;
    return kReplacement;
  }
  end = start;
  return c;
}

void append_utf8(std::string& out, char32_t c) {
  if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) c = kReplacement;
  utf8proc_uint8_t buffer[4];
  const auto n = utf8proc_encode_char(static_cast<utf8proc_int32_t>(c), buffer);
  out.append(reinterpret_cast<const char*>(buffer), static_cast<size_t>(n));
}

size_t count_code_points(std::string_view text) {
  size_t n = 0;
  for (char c : text) n += is_continuation(c) ? 0 : 1;
  return n;
}

size_t byte_offset(std::string_view text, size_t index) {
  size_t offset = 0;
  while (offset < text.size()) {
    if (!is_continuation(text[offset])) {
      if (index == 0) return offset;
      --index;
    }
    ++offset;
  }
  return text.size();
}

bool is_space(char32_t c) {
  if (c < 0x80) return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_alpha(char32_t c) {
  const auto k = category(c);
  return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}

bool is_digit(char32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  return category(c) == UTF8PROC_CATEGORY_ND || (c >= 0x2070 && c <= 0x2079) || c == 0xB2 || c == 0xB3 ||
         c == 0xB9 || (c >= 0x2080 && c <= 0x2089) || (c >= 0x2460 && c <= 0x2468);
}

bool is_decimal(char32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; }

bool is_alnum(char32_t c) {
  const auto k = category(c);
  return is_alpha(c) || (k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO);
}

bool is_upper(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LU; }

bool is_lower(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LL || c == 0xAA || c == 0xBA; }

bool is_printable(char32_t c) {
  if (c == ' ') return true;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

std::string to_upper(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const char32_t c = next_code_point(text, i);
    if (const auto special = special_upper(c); !special.empty()) {
      out += special;
    } else {
      append_utf8(out, static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))));
    }
  }
  return out;
}

std::string to_lower(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t start = i;
    const char32_t c = next_code_point(text, i);
    if (c == 0x03A3 && is_final_sigma(text, start, i)) {
      append_utf8(out, 0x03C2);
    } else {
      append_lower(out, c);
    }
  }
  return out;
}

std::string to_title(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool inside = false;
  for (size_t i = 0; i < text.size();) {
    const char32_t c = next_code_point(text, i);
    if (inside) {
      append_lower(out, c);
    } else if (c == 0x00DF) {
      out += "Ss";
    } else {
      append_utf8(out, static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))));
    }
    inside = is_cased(c);
  }
  return out;
}

std::string case_fold(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const char32_t c = next_code_point(text, i);
    utf8proc_int32_t folded[8];
    int boundary = 0;
    const auto n =
        utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), folded, 8, UTF8PROC_CASEFOLD, &boundary);
    for (utf8proc_ssize_t k = 0; k < std::min<utf8proc_ssize_t>(n, 8); ++k) {
      append_utf8(out, static_cast<char32_t>(folded[k]));
    }
  }
  return out;
}

std::string_view strip(std::string_view text, StripSide side, const std::string_view* chars) {
  const auto drop = [chars](char32_t c) {
    if (chars == nullptr) return is_space(c);
    for (size_t i = 0; i < chars->size();) {
      if (next_code_point(*chars, i) == c) return true;
    }
    return false;
  };
  if (side != StripSide::kRight) {
    size_t begin = 0;
    while (begin < text.size()) {
      size_t next = begin;
      if (!drop(next_code_point(text, next))) break;
      begin = next;
    }
    text.remove_prefix(begin);
  }
  if (side != StripSide::kLeft) {
    size_t end = text.size();
    while (end > 0) {
      size_t previous = end;
      if (!drop(previous_code_point(text, previous))) break;
      end = previous;
    }
    text = text.substr(0, end);
  }
  return text;
}

}  // namespace decant::text
