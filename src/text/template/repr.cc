#include "text/template/repr.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "text/template/callable.h"
#include "text/template/errors.h"
#include "text/template/unicode.h"

namespace decant::text {
namespace {

Status append_items(std::string& out, const std::vector<Value>& items, std::string_view open,
                    std::string_view close, size_t limit) {
  out += open;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += ", ";
    DECANT_RETURN_IF_ERROR(append_repr(out, items[i], limit));
  }
  out += close;
  return ok_status();
}

Status append_dict(std::string& out, const Value& v, size_t limit) {
  out += '{';
  bool first = true;
  for (const auto& [key, value] : v.entries()) {
    if (!first) out += ", ";
    first = false;
    DECANT_RETURN_IF_ERROR(append_repr(out, key, limit));
    out += ": ";
    DECANT_RETURN_IF_ERROR(append_repr(out, value, limit));
  }
  out += '}';
  return ok_status();
}

}  // namespace

std::string repr_double(double d) {
  if (std::isnan(d)) return "nan";
  if (std::isinf(d)) return d < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, d, std::chars_format::scientific).ptr;
  std::string_view text(buffer, static_cast<size_t>(end - buffer));
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const size_t e = text.find('e');
  int exponent = 0;
  const char* digits_begin = text.data() + e + (text[e + 1] == '+' ? 2 : 1);
  std::from_chars(digits_begin, text.data() + text.size(), exponent);
  std::string digits(text.substr(0, 1));
  if (e > 2) digits += text.substr(2, e - 2);
  const int n = static_cast<int>(digits.size());
  std::string out = negative ? "-" : "";
  if (exponent < -4 || exponent >= 16) {
    out += digits.substr(0, 1);
    if (n > 1) out += "." + digits.substr(1);
    return out + fmt::format("e{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0) return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  if (n <= exponent + 1) return out + digits + std::string(static_cast<size_t>(exponent + 1 - n), '0') + ".0";
  const auto point = static_cast<size_t>(exponent + 1);
  return out + digits.substr(0, point) + "." + digits.substr(point);
}

void append_repr_string(std::string& out, std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  out += quote;
  for (size_t i = 0; i < text.size();) {
    const size_t start = i;
    const char32_t c = next_code_point(text, i);
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (is_printable(c)) {
      out += text.substr(start, i - start);
    } else {
      const auto code = static_cast<uint32_t>(c);
      out += code < 0x100     ? fmt::format("\\x{:02x}", code)
             : code < 0x10000 ? fmt::format("\\u{:04x}", code)
                              : fmt::format("\\U{:08x}", code);
    }
  }
  out += quote;
}

Status append_repr(std::string& out, const Value& v, size_t limit) {
  if (out.size() > limit) return limit_error(fmt::format("a text of more than {} bytes", limit));
  switch (v.kind()) {
    case ValueKind::kNone:
      out += "None";
      break;
    case ValueKind::kUndefined:
      out += "Undefined";
      break;
    case ValueKind::kBool:
      out += v.as_bool() ? "True" : "False";
      break;
    case ValueKind::kInt:
      out += std::to_string(v.as_int());
      break;
    case ValueKind::kBigInt:
      out += v.big_digits();
      break;
    case ValueKind::kDouble:
      out += repr_double(v.as_double());
      break;
    case ValueKind::kString:
      if (v.is_markup()) out += "Markup(";
      append_repr_string(out, v.as_string());
      if (v.is_markup()) out += ')';
      break;
    case ValueKind::kList:
      return append_items(out, v.items(), "[", "]", limit);
    case ValueKind::kTuple:
      return append_items(out, v.items(), "(", v.items().size() == 1 ? ",)" : ")", limit);
    case ValueKind::kView:
      return append_items(out, v.items(), fmt::format("{}([", v.type_name()), "])", limit);
    case ValueKind::kDict:
      return append_dict(out, v, limit);
    case ValueKind::kRange: {
      const auto& r = v.as_range();
      out += r.step == 1 ? fmt::format("range({}, {})", r.start, r.stop)
                         : fmt::format("range({}, {}, {})", r.start, r.stop, r.step);
      break;
    }
    case ValueKind::kCallable:
      out += fmt::format("<{} '{}'>", v.type_name(), v.as_callable().name());
      break;
    default:
      out += fmt::format("<{} object>", v.type_name());
      break;
  }
  return ok_status();
}

Status append_text(std::string& out, const Value& v, size_t limit) {
  if (v.is_string()) {
    if (out.size() + v.as_string().size() > limit) {
      return limit_error(fmt::format("a text of more than {} bytes", limit));
    }
    out += v.as_string();
    return ok_status();
  }
  return v.is_undefined() ? ok_status() : append_repr(out, v, limit);
}

Result<std::string> to_text(const Value& v, size_t limit) {
  std::string out;
  DECANT_RETURN_IF_ERROR(append_text(out, v, limit));
  return out;
}

std::string escape_html(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace decant::text
