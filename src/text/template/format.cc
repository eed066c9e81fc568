#include "text/template/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/template/errors.h"
#include "text/template/interpreter.h"
#include "text/template/members.h"
#include "text/template/repr.h"
#include "text/template/unicode.h"

namespace decant::text {
namespace {

constexpr size_t kMaxWidth = 10'000;

// A format spec of either language: fill, alignment, sign, width, precision, type.
struct Spec {
  std::string fill = " ";
  char align = '\0';  // < > ^ =
  char sign = '\0';
  bool zero = false, alternate = false, comma = false;
  size_t width = 0;
  int precision = -1;
  char type = '\0';
};

bool take_number(std::string_view text, size_t& i, size_t& out) {
  const auto [end, error] = std::from_chars(text.data() + i, text.data() + text.size(), out);
  if (error != std::errc() || out > kMaxWidth) return false;
  i = static_cast<size_t>(end - text.data());
  return true;
}

bool is_digit_at(std::string_view text, size_t i) {
  return i < text.size() && text[i] >= '0' && text[i] <= '9';
}

std::string group_thousands(std::string digits) {
  const size_t end = std::min(digits.find('.'), digits.size());
  for (size_t i = end; i > 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

// Body without sign, and whether the number is negative.
Result<std::pair<std::string, bool>> number_body(const Value& v, const Spec& spec) {
  const int precision = spec.precision < 0 ? 6 : spec.precision;
  const bool integral = v.is_integral();
  const double d = v.as_double();
  const bool negative = integral ? v.as_int() < 0 : std::signbit(d);
  const double size = negative ? -d : d;
  const uint64_t magnitude =
      negative ? uint64_t{0} - static_cast<uint64_t>(v.as_int()) : static_cast<uint64_t>(v.as_int());
  std::string out;
  switch (spec.type) {
    case 'x':
      out = fmt::format("{}{:x}", spec.alternate ? "0x" : "", magnitude);
      break;
    case 'X':
      out = fmt::format("{}{:X}", spec.alternate ? "0X" : "", magnitude);
      break;
    case 'o':
      out = fmt::format("{}{:o}", spec.alternate ? "0o" : "", magnitude);
      break;
    case 'b':
      out = fmt::format("{}{:b}", spec.alternate ? "0b" : "", magnitude);
      break;
    case 'e':
      out = fmt::format("{:.{}e}", size, precision);
      break;
    case 'E':
      out = fmt::format("{:.{}E}", size, precision);
      break;
    case 'f':
    case 'F':
      out = fmt::format("{:.{}f}", size, precision);
      break;
    case 'g':
    case 'G':
      out = fmt::format("{:.{}g}", size, precision == 0 ? 1 : precision);
      break;
    case '%':
      out = fmt::format("{:.{}f}%", size * 100, precision);
      break;
    case 'd':
    case '\0':
      if (integral) {
        out = std::to_string(magnitude);
      } else if (spec.type == 'd') {
        return value_error("Unknown format code 'd' for object of type 'float'");
      } else {
        out = spec.precision < 0 ? repr_double(size)
                                 : fmt::format("{:.{}g}", size, std::max(1, spec.precision));
      }
      break;
    default:
      return value_error(fmt::format("Unknown format code '{}'", spec.type));
  }
  if (!integral && std::string_view("xXobd").find(spec.type) != std::string_view::npos && spec.type != '\0') {
    return value_error(fmt::format("Unknown format code '{}' for object of type 'float'", spec.type));
  }
  if (spec.comma) out = group_thousands(std::move(out));
  return std::pair(std::move(out), negative);
}

std::string pad(std::string_view body, std::string_view sign, const Spec& spec, char default_align) {
  const size_t length = count_code_points(body) + sign.size();
  const size_t missing = spec.width > length ? spec.width - length : 0;
  char align = spec.align == '\0' ? default_align : spec.align;
  std::string_view fill = spec.fill;
  if (spec.zero && spec.align == '\0' && default_align == '>') {
    align = '=';
    fill = "0";
  }
  const size_t left = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  std::string out;
  if (align == '=') out += sign;
  for (size_t i = 0; i < left; ++i) out += fill;
  if (align != '=') out += sign;
  out += body;
  for (size_t i = left; i < missing; ++i) out += fill;
  return out;
}

Result<std::string> format_value(const Value& v, const Spec& spec, size_t limit) {
  if (v.is_number() && spec.type != 's') {
    if (v.is(ValueKind::kBool) && spec.type == '\0' && spec.width == 0)
      return std::string(v.as_bool() ? "True" : "False");
    DECANT_ASSIGN(const auto number, number_body(v, spec));
    const std::string sign = number.second                          ? "-"
                             : spec.sign == '+' || spec.sign == ' ' ? std::string(1, spec.sign)
                                                                    : "";
    return pad(number.first, sign, spec, '>');
  }
  DECANT_ASSIGN(std::string text, to_text(v, limit));
  if (spec.type != 's' && spec.type != '\0') {
    return value_error(
        fmt::format("Unknown format code '{}' for object of type '{}'", spec.type, v.type_name()));
  }
  if (spec.precision >= 0) text.resize(byte_offset(text, static_cast<size_t>(spec.precision)));
  return pad(text, "", spec, '<');
}

Result<Spec> parse_spec(std::string_view text) {
  Spec spec;
  size_t i = 0;
  const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
  if (!text.empty()) {
    size_t after = 0;
    next_code_point(text, after);
    if (after < text.size() && is_align(text[after])) {
      spec.fill = text.substr(0, after);
      spec.align = text[after];
      i = after + 1;
    } else if (is_align(text[0])) {
      spec.align = text[0];
      i = 1;
    }
  }
  if (i < text.size() && (text[i] == '+' || text[i] == '-' || text[i] == ' ')) spec.sign = text[i++];
  if (i < text.size() && text[i] == '#') spec.alternate = ++i > 0;
  if (i < text.size() && text[i] == '0') spec.zero = ++i > 0;
  if (is_digit_at(text, i) && !take_number(text, i, spec.width)) return value_error("format width too large");
  if (i < text.size() && text[i] == ',') spec.comma = ++i > 0;
  if (i < text.size() && text[i] == '.') {
    ++i;
    size_t precision = 0;
    if (!is_digit_at(text, i) || !take_number(text, i, precision))
      return value_error("Format specifier missing precision");
    spec.precision = static_cast<int>(precision);
  }
  if (i < text.size()) spec.type = text[i++];
  if (i < text.size()) return value_error("Invalid format specifier");
  return spec;
}

// The value of "name.attribute[key]" or "0"; `automatic` numbers empty names.
Result<Value> field_value(Interpreter& interpreter, std::string_view field, const CallArgs& args,
                          size_t& automatic) {
  const size_t first_end = std::min(field.find_first_of(".["), field.size());
  const std::string_view first = field.substr(0, first_end);
  Value v;
  size_t index = 0;
  size_t end = 0;
  const bool numbered = !first.empty() && take_number(first, end, index) && end == first.size();
  if (first.empty() || numbered) {
    if (first.empty()) index = automatic++;
    if (index >= args.positional.size()) {
      return raise("IndexError",
                   "Replacement index " + std::to_string(index) + " out of range for positional args tuple");
    }
    v = args.positional[index];
  } else {
    const auto it =
        std::find_if(args.named.begin(), args.named.end(), [&](const auto& n) { return n.first == first; });
    if (it == args.named.end()) return raise("KeyError", fmt::format("'{}'", first));
    v = it->second;
  }
  for (size_t i = first_end; i < field.size();) {
    if (field[i] == '.') {
      const size_t stop = std::min(field.find_first_of(".[", i + 1), field.size());
      DECANT_ASSIGN(v, get_attribute(interpreter, v, field.substr(i + 1, stop - i - 1)));
      i = stop;
    } else {
      const size_t stop = field.find(']', i);
      if (stop == std::string_view::npos) return value_error("expected '}' before end of string");
      const std::string_view key = field.substr(i + 1, stop - i - 1);
      size_t key_end = 0;
      const bool integer = !key.empty() && take_number(key, key_end, index) && key_end == key.size();
      const Value item =
          integer ? Value::integer(static_cast<int64_t>(index)) : Value::string(std::string(key));
      DECANT_ASSIGN(v, get_item(interpreter, v, item));
      i = stop + 1;
    }
  }
  return v;
}

Result<std::string> replacement(Interpreter& interpreter, std::string_view field, const CallArgs& args,
                                size_t& automatic) {
  const size_t limit = interpreter.options().limits.output_bytes;
  std::string_view spec_text;
  char conversion = '\0';
  if (const size_t colon = field.find(':'); colon != std::string_view::npos) {
    spec_text = field.substr(colon + 1);
    field = field.substr(0, colon);
  }
  if (const size_t mark = field.find('!'); mark != std::string_view::npos) {
    if (mark + 2 != field.size()) return value_error("expected ':' after conversion specifier");
    conversion = field[mark + 1];
    field = field.substr(0, mark);
  }
  DECANT_ASSIGN(Value v, field_value(interpreter, field, args, automatic));
  if (conversion == 'r') {
    std::string text;
    DECANT_RETURN_IF_ERROR(append_repr(text, v, limit));
    v = Value::string(std::move(text));
  } else if (conversion == 's') {
    DECANT_ASSIGN(std::string text, to_text(v, limit));
    v = Value::string(std::move(text));
  } else if (conversion != '\0') {
    return value_error(fmt::format("Unknown conversion specifier {}", conversion));
  }
  DECANT_ASSIGN(const Spec spec, parse_spec(spec_text));
  return format_value(v, spec, limit);
}

}  // namespace

Result<Value> format_percent(Interpreter& interpreter, std::string_view text,
                             const std::vector<Value>& values, const Value* mapping) {
  const size_t limit = interpreter.options().limits.output_bytes;
  std::string out;
  size_t next = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (++i >= text.size()) return value_error("incomplete format");
    if (text[i] == '%') {
      out += '%';
      continue;
    }
    Value v;
    bool named = false;
    if (text[i] == '(') {
      const size_t close = text.find(')', i);
      if (close == std::string_view::npos) return value_error("incomplete format key");
      if (mapping == nullptr) return type_error("format requires a mapping");
      const std::string_view key = text.substr(i + 1, close - i - 1);
      const Value* found = mapping->find(key);
      if (found == nullptr) return raise("KeyError", fmt::format("'{}'", key));
      v = *found;
      named = true;
      i = close + 1;
    }
    Spec spec;
    for (; i < text.size() && std::string_view("-+ 0#").find(text[i]) != std::string_view::npos; ++i) {
      if (text[i] == '-') spec.align = '<';
      if (text[i] == '0') spec.zero = true;
      if (text[i] == '#') spec.alternate = true;
      if (text[i] == '+' || text[i] == ' ') spec.sign = text[i];
    }
    if (is_digit_at(text, i) && !take_number(text, i, spec.width))
      return value_error("format width too large");
    if (i < text.size() && text[i] == '.') {
      size_t precision = 0;
      ++i;
      if (is_digit_at(text, i) && !take_number(text, i, precision))
        return value_error("format precision too large");
      spec.precision = static_cast<int>(precision);
    }
    if (i >= text.size()) return value_error("incomplete format");
    if (!named) {
      if (next >= values.size()) return type_error("not enough arguments for format string");
      v = values[next++];
    }
    const char type = text[i];
    if (spec.align == '\0') spec.align = spec.zero && type != 's' && type != 'r' ? '\0' : '>';
    if (type == 's' || type == 'r' || type == 'a') {
      spec.type = 's';
      if (type != 's') {
        std::string repr;
        DECANT_RETURN_IF_ERROR(append_repr(repr, v, limit));
        v = Value::string(std::move(repr));
      }
    } else {
      if (!v.is_number())
        return type_error(fmt::format("%{} format: a real number is required, not {}", type, v.type_name()));
      spec.type = type == 'i' || type == 'u' ? 'd' : type;
      if (spec.type == 'd' && v.is(ValueKind::kDouble))
        v = Value::integer(static_cast<int64_t>(std::clamp(v.as_double(), -9e18, 9e18)));
    }
    DECANT_ASSIGN(const std::string piece, format_value(v, spec, limit));
    if (out.size() + piece.size() > limit) return limit_error("a formatted text grows too long");
    out += piece;
  }
  if (next < values.size() && mapping == nullptr)
    return type_error("not all arguments converted during string formatting");
  return interpreter.make_string(std::move(out));
}

Result<Value> format_braces(Interpreter& interpreter, std::string_view text, const CallArgs& args) {
  std::string out;
  size_t automatic = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if ((c == '{' || c == '}') && i + 1 < text.size() && text[i + 1] == c) {
      out += c;
      ++i;
    } else if (c == '}') {
      return value_error("Single '}' encountered in format string");
    } else if (c == '{') {
      const size_t close = text.find('}', i);
      if (close == std::string_view::npos) return value_error("Single '{' encountered in format string");
      DECANT_ASSIGN(const std::string piece,
                    replacement(interpreter, text.substr(i + 1, close - i - 1), args, automatic));
      if (out.size() + piece.size() > interpreter.options().limits.output_bytes) {
        return limit_error("a formatted text grows too long");
      }
      out += piece;
      i = close;
    } else {
      out += c;
    }
  }
  return interpreter.make_string(std::move(out));
}

}  // namespace decant::text
