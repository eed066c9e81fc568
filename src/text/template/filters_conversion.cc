#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "text/template/dump_json.h"
#include "text/template/errors.h"
#include "text/template/filters.h"
#include "text/template/interpreter.h"
#include "text/template/members.h"
#include "text/template/operators.h"
#include "text/template/unicode.h"

namespace decant::text {
namespace {

Result<Value> default_value(Interpreter&, const Value& input, CallArgs args) {
  Parameters p("default", {"default_value", "boolean"});
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  if (input.is_undefined() || (p.flag(1, false) && !truthy(input))) return p.get(0, Value::string(""));
  return input;
}

Result<Value> to_json(Interpreter& in, const Value& input, CallArgs args) {
  Parameters p("tojson", {"ensure_ascii", "indent", "separators", "sort_keys"});
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  DECANT_ASSIGN(const JsonStyle style, json_style(p[0], p[1], p[2], p[3]));
  DECANT_ASSIGN(std::string text, dump_json(input, style, in.options().limits.output_bytes));
  return in.make_string(std::move(text));
}

std::optional<double> parse_real(std::string_view text) {
  text = strip(text, StripSide::kBoth);
  if (text.starts_with('+')) text.remove_prefix(1);
  double d = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), d);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return d;
}

// Python's int(text, base): base 0 reads the base from a prefix, bases 2, 8 and 16 allow theirs, digits may
// have '_' between them.
std::optional<Value> parse_integer(std::string_view input, int base) {
  input = strip(input, StripSide::kBoth);
  const bool negative = input.starts_with('-');
  if (negative || input.starts_with('+')) input.remove_prefix(1);
  static constexpr std::pair<char, int> kPrefixes[] = {{'x', 16}, {'o', 8}, {'b', 2}};
  for (const auto& [letter, value] : kPrefixes) {
    if (input.size() > 2 && input[0] == '0' && (input[1] | 0x20) == letter && (base == 0 || base == value)) {
      input.remove_prefix(2);
      base = value;
    }
  }
  if (base == 0) base = 10;
  if (input.empty() || input.front() == '_' || input.back() == '_' ||
      input.find("__") != std::string_view::npos) {
    return std::nullopt;
  }
  std::string text = negative ? "-" : "";
  std::copy_if(input.begin(), input.end(), std::back_inserter(text), [](char c) { return c != '_'; });
  if (input.front() == '-') return std::nullopt;
  int64_t i = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), i, base);
  if (end != text.data() + text.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range && base == 10) return Value::big_integer(text);
  return error == std::errc() ? std::optional(Value::integer(i)) : std::nullopt;
}

std::optional<Value> truncated(double d) {
  if (!std::isfinite(d)) return std::nullopt;
  if (std::abs(d) >= 9.2e18) return Value::big_integer(fmt::format("{:.0f}", std::trunc(d)));
  return Value::integer(static_cast<int64_t>(d));
}

Result<Value> to_int(Interpreter&, const Value& input, CallArgs args) {
  Parameters p("int", {"default", "base"});
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  if (input.is_undefined()) return raise(input.undefined_kind(), input.undefined_message());
  DECANT_ASSIGN(const int64_t base, p.integer(1, 10));
  const Value otherwise = p.get(0, Value::integer(0));
  if (input.is_integral()) return Value::integer(input.as_int());
  if (input.is(ValueKind::kBigInt)) return input;
  if (input.is(ValueKind::kDouble)) return truncated(input.as_double()).value_or(otherwise);
  if (!input.is_string()) return otherwise;
  if (base == 0 || (base >= 2 && base <= 36)) {
    if (auto v = parse_integer(input.as_string(), static_cast<int>(base))) return *v;
  }
  if (const auto d = parse_real(input.as_string())) return truncated(*d).value_or(otherwise);
  return otherwise;
}

Result<Value> to_float(Interpreter&, const Value& input, CallArgs args) {
  Parameters p("float", {"default"});
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  if (input.is_undefined()) return raise(input.undefined_kind(), input.undefined_message());
  if (input.is_number()) return Value::real(input.as_double());
  if (input.is_string()) {
    if (const auto d = parse_real(input.as_string())) return Value::real(*d);
  }
  return p.get(0, Value::real(0));
}

Result<Value> absolute(Interpreter&, const Value& input, CallArgs) {
  if (input.is(ValueKind::kDouble)) return Value::real(std::abs(input.as_double()));
  if (input.is_integral())
    return input.as_int() < 0 ? unary(Op::kNeg, input) : Value::integer(input.as_int());
  if (input.is_undefined()) return raise(input.undefined_kind(), input.undefined_message());
  return type_error(fmt::format("bad operand type for abs(): '{}'", input.type_name()));
}

Result<Value> round(Interpreter&, const Value& input, CallArgs args) {
  Parameters p("round", {"precision", "method"});
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  DECANT_ASSIGN(const int64_t precision, p.integer(0, 0));
  DECANT_ASSIGN(const std::string_view method, p.text(1, "common"));
  if (!input.is_number()) {
    if (input.is_undefined()) return raise(input.undefined_kind(), input.undefined_message());
    return type_error(fmt::format("type {} doesn't define __round__ method", input.type_name()));
  }
  if (precision < -300 || precision > 300) return value_error("precision out of range");
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double d = input.as_double();
  if (method == "ceil") return Value::real(std::ceil(d * scale) / scale);
  if (method == "floor") return Value::real(std::floor(d * scale) / scale);
  if (method != "common") return raise("FilterArgumentError", "method must be common, ceil or floor");
  if (input.is_integral() && precision >= 0) return Value::integer(input.as_int());
  if (precision < 0 || !std::isfinite(d)) return Value::real(std::nearbyint(d * scale) / scale);
  // Correctly rounded from the exact value, halves to even, as Python's round.
  const std::string text = fmt::format("{:.{}f}", d, precision);
  double rounded = 0;
  std::from_chars(text.data(), text.data() + text.size(), rounded);
  return Value::real(rounded);
}

Result<Value> attribute(Interpreter& in, const Value& input, CallArgs args) {
  Parameters p("attr", {"name"}, 1);
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  DECANT_ASSIGN(const std::string_view name, p.text(0));
  if (input.is_dict() && find_container_method(input, name) == nullptr) {
    return Value::undefined(fmt::format("'dict object' has no attribute '{}'", name));
  }
  return get_attribute(in, input, name);
}

constexpr FilterEntry kFilters[] = {
    {"abs", absolute},   {"attr", attribute}, {"d", default_value}, {"default", default_value},
    {"float", to_float}, {"int", to_int},     {"round", round},     {"tojson", to_json},
};

}  // namespace

std::span<const FilterEntry> conversion_filters() { return kFilters; }

}  // namespace decant::text
