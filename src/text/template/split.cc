#include "text/template/split.h"

#include <algorithm>

#include "text/template/unicode.h"

namespace decant::text {
namespace {

bool is_line_break(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

}  // namespace

std::vector<std::string_view> split_text(std::string_view text, std::string_view separator, int64_t limit) {
  std::vector<std::string_view> parts;
  if (separator.empty()) {
    text = strip(text, StripSide::kLeft);
    while (!text.empty()) {
      if (limit >= 0 && static_cast<int64_t>(parts.size()) >= limit) {
        parts.push_back(text);
        break;
      }
      size_t end = 0;
      while (end < text.size()) {
        size_t next = end;
        if (is_space(next_code_point(text, next))) break;
        end = next;
      }
      parts.push_back(text.substr(0, end));
      text = strip(text.substr(end), StripSide::kLeft);
    }
    return parts;
  }
  size_t found = 0;
  while ((limit < 0 || static_cast<int64_t>(parts.size()) < limit) &&
         (found = text.find(separator)) != std::string_view::npos) {
    parts.push_back(text.substr(0, found));
    text.remove_prefix(found + separator.size());
  }
  parts.push_back(text);
  return parts;
}

std::vector<std::string_view> split_text_from_right(std::string_view text, std::string_view separator,
                                                    int64_t limit) {
  std::vector<std::string_view> parts;
  if (separator.empty()) {
    text = strip(text, StripSide::kRight);
    while (!text.empty()) {
      if (limit >= 0 && static_cast<int64_t>(parts.size()) >= limit) {
        parts.push_back(text);
        break;
      }
      size_t begin = text.size();
      while (begin > 0) {
        size_t previous = begin;
        if (is_space(previous_code_point(text, previous))) break;
        begin = previous;
      }
      parts.push_back(text.substr(begin));
      text = strip(text.substr(0, begin), StripSide::kRight);
    }
  } else {
    size_t found = 0;
    while ((limit < 0 || static_cast<int64_t>(parts.size()) < limit) &&
           (found = text.rfind(separator)) != std::string_view::npos) {
      parts.push_back(text.substr(found + separator.size()));
      text = text.substr(0, found);
    }
    parts.push_back(text);
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  size_t begin = 0;
  for (size_t i = 0; i < text.size();) {
    const size_t end = i;
    const char32_t c = next_code_point(text, i);
    if (!is_line_break(c)) continue;
    if (c == '\r' && i < text.size() && text[i] == '\n') ++i;
    lines.push_back(text.substr(begin, (keep_ends ? i : end) - begin));
    begin = i;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

}  // namespace decant::text
