#include "text/template/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/template/errors.h"
#include "text/template/format.h"
#include "text/template/interpreter.h"
#include "text/template/repr.h"

namespace decant::text {
namespace {

std::string_view op_text(Op op) {
  static constexpr std::string_view kTexts[] = {"+",           "-",  "*",      "/", "//", "%",
                                                "** or pow()", "==", "!=",     "<", "<=", ">",
                                                ">=",          "in", "not in", "-", "+",  "not"};
  return kTexts[static_cast<size_t>(op)];
}

Status check_defined(const Value& v) {
  return v.is_undefined() ? raise(v.undefined_kind(), v.undefined_message()) : ok_status();
}

Status overflow() { return raise("OverflowError", "integers beyond 64 bits cannot be computed with"); }

Status unsupported_operands(Op op, const Value& a, const Value& b) {
  return type_error(fmt::format("unsupported operand type(s) for {}: '{}' and '{}'", op_text(op),
                                a.type_name(), b.type_name()));
}

Result<Value> integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) return Value::real(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) return overflow();
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) return overflow();
  }
  return Value::integer(result);
}

// Floor division and the remainder that goes with it, which has the divisor's sign.
Result<Value> integer_division(Op op, int64_t a, int64_t b) {
  if (b == 0) return raise("ZeroDivisionError", "integer division or modulo by zero");
  if (b == -1) {
    int64_t negated = 0;
    if (op == Op::kMod) return Value::integer(0);
    if (__builtin_sub_overflow(int64_t{0}, a, &negated)) return overflow();
    return Value::integer(negated);
  }
  const int64_t remainder = a % b;
  const bool fix = remainder != 0 && (remainder < 0) != (b < 0);
  return Value::integer(op == Op::kMod ? remainder + (fix ? b : 0) : a / b - (fix ? 1 : 0));
}

Result<Value> integer_arithmetic(Op op, int64_t a, int64_t b) {
  int64_t r = 0;
  switch (op) {
    case Op::kAdd:
      return __builtin_add_overflow(a, b, &r) ? Result<Value>(overflow()) : Value::integer(r);
    case Op::kSub:
      return __builtin_sub_overflow(a, b, &r) ? Result<Value>(overflow()) : Value::integer(r);
    case Op::kMul:
      return __builtin_mul_overflow(a, b, &r) ? Result<Value>(overflow()) : Value::integer(r);
    case Op::kDiv:
      if (b == 0) return raise("ZeroDivisionError", "division by zero");
      return Value::real(static_cast<double>(a) / static_cast<double>(b));
    case Op::kPow:
      return integer_power(a, b);
    default:
      return integer_division(op, a, b);
  }
}

Result<Value> real_arithmetic(Op op, double a, double b) {
  const bool divides = op == Op::kDiv || op == Op::kFloorDiv || op == Op::kMod;
  if (divides && b == 0) return raise("ZeroDivisionError", "float division by zero");
  switch (op) {
    case Op::kAdd:
      return Value::real(a + b);
    case Op::kSub:
      return Value::real(a - b);
    case Op::kMul:
      return Value::real(a * b);
    case Op::kDiv:
      return Value::real(a / b);
    case Op::kFloorDiv:
      return Value::real(std::floor(a / b));
    case Op::kMod: {
      const double r = std::fmod(a, b);
      return Value::real(r != 0 && (r < 0) != (b < 0) ? r + b : r);
    }
    default:
      return Value::real(std::pow(a, b));
  }
}

Result<Value> add_strings(Interpreter& interpreter, const Value& a, const Value& b) {
  const bool markup = a.is_markup() || b.is_markup();
  const auto part = [markup](const Value& v) {
    return markup && !v.is_markup() ? escape_html(v.as_string()) : std::string(v.as_string());
  };
  return interpreter.make_string(part(a) + part(b), markup);
}

Result<Value> repeat(Interpreter& interpreter, const Value& sequence, int64_t count) {
  const auto n = static_cast<uint64_t>(std::max<int64_t>(count, 0));
  if (sequence.is_string()) {
    const std::string_view text = sequence.as_string();
    if (!text.empty() && n > interpreter.options().limits.output_bytes / text.size()) {
      return limit_error("a repeated text grows too long");
    }
    std::string out;
    out.reserve(text.size() * n);
    for (uint64_t i = 0; i < n && !text.empty(); ++i) out += text;
    return interpreter.make_string(std::move(out), sequence.is_markup());
  }
  const auto& items = sequence.items();
  if (!items.empty() && n > static_cast<uint64_t>(interpreter.options().limits.range_items) / items.size()) {
    return limit_error("a repeated list grows too long");
  }
  std::vector<Value> out;
  for (uint64_t i = 0; i < n && !items.empty(); ++i) out.insert(out.end(), items.begin(), items.end());
  DECANT_RETURN_IF_ERROR(interpreter.charge_bytes(out.size() * sizeof(Value)));
  return sequence.is(ValueKind::kTuple) ? checked_tuple(std::move(out)) : checked_list(std::move(out));
}

Result<Value> add(Interpreter& interpreter, const Value& a, const Value& b) {
  if (a.is_string() && b.is_string()) return add_strings(interpreter, a, b);
  if (a.is_sequence() && a.kind() == b.kind()) {
    std::vector<Value> items = a.items();
    items.insert(items.end(), b.items().begin(), b.items().end());
    DECANT_RETURN_IF_ERROR(interpreter.charge_bytes(items.size() * sizeof(Value)));
    return a.is(ValueKind::kTuple) ? checked_tuple(std::move(items)) : checked_list(std::move(items));
  }
  if (a.is_string() || a.is_sequence()) {
    DECANT_RETURN_IF_ERROR(check_defined(b));
    const std::string_view type = a.is_string() ? "str" : a.type_name();
    return type_error(fmt::format("can only concatenate {} (not \"{}\") to {}", type, b.type_name(), type));
  }
  return unsupported_operands(Op::kAdd, a, b);
}

}  // namespace

Result<Value> unary(Op op, const Value& v) {
  if (op == Op::kNot) return Value::boolean(!truthy(v));
  DECANT_RETURN_IF_ERROR(check_defined(v));
  if (v.is(ValueKind::kDouble)) return op == Op::kNeg ? Value::real(-v.as_double()) : v;
  if (v.is_integral()) {
    int64_t negated = 0;
    if (op == Op::kPos) return Value::integer(v.as_int());
    if (__builtin_sub_overflow(int64_t{0}, v.as_int(), &negated)) return overflow();
    return Value::integer(negated);
  }
  if (v.is(ValueKind::kBigInt)) {
    if (op == Op::kPos) return v;
    const std::string_view digits = v.big_digits();
    return Value::big_integer(digits.starts_with('-') ? std::string(digits.substr(1))
                                                      : "-" + std::string(digits));
  }
  return type_error(fmt::format("bad operand type for unary {}: '{}'", op_text(op), v.type_name()));
}

Result<Value> binary(Interpreter& interpreter, Op op, const Value& a, const Value& b) {
  DECANT_RETURN_IF_ERROR(check_defined(a));
  if (op == Op::kMod && a.is_string()) {
    CallArgs args;
    if (b.is(ValueKind::kTuple)) {
      args.positional = b.items();
    } else {
      args.positional.push_back(b);
    }
    return format_percent(interpreter, a.as_string(), args.positional, b.is_dict() ? &b : nullptr);
  }
  DECANT_RETURN_IF_ERROR(check_defined(b));
  if (a.is_integral() && b.is_integral()) return integer_arithmetic(op, a.as_int(), b.as_int());
  if (a.is_number() && b.is_number()) return real_arithmetic(op, a.as_double(), b.as_double());
  if (a.is(ValueKind::kBigInt) || b.is(ValueKind::kBigInt)) {
    const Value& other = a.is(ValueKind::kBigInt) ? b : a;
    if (other.is_number() || other.is(ValueKind::kBigInt)) return overflow();
  }
  if (op == Op::kAdd) return add(interpreter, a, b);
  if (op == Op::kMul) {
    if ((a.is_string() || a.is_sequence()) && b.is_integral()) return repeat(interpreter, a, b.as_int());
    if ((b.is_string() || b.is_sequence()) && a.is_integral()) return repeat(interpreter, b, a.as_int());
  }
  return unsupported_operands(op, a, b);
}

Result<bool> less(const Value& a, const Value& b) {
  DECANT_RETURN_IF_ERROR(check_defined(a));
  DECANT_RETURN_IF_ERROR(check_defined(b));
  if (a.is_integral() && b.is_integral()) return a.as_int() < b.as_int();
  if (a.is_number() && b.is_number()) return a.as_double() < b.as_double();
  if (a.is_string() && b.is_string()) return a.as_string() < b.as_string();
  const bool a_big = a.is(ValueKind::kBigInt);
  const bool b_big = b.is(ValueKind::kBigInt);
  if (a_big && b.is_number()) return a.big_digits().starts_with('-');
  if (b_big && a.is_number()) return !b.big_digits().starts_with('-');
  if (a_big && b_big) {
    const bool a_negative = a.big_digits().starts_with('-');
    if (a_negative != b.big_digits().starts_with('-')) return a_negative;
    const auto key = [](const Value& v) { return std::pair(v.big_digits().size(), v.big_digits()); };
    return a_negative ? key(b) < key(a) : key(a) < key(b);
  }
  if (a.is_sequence() && a.kind() == b.kind()) {
    const size_t n = std::min(a.items().size(), b.items().size());
    for (size_t i = 0; i < n; ++i) {
      if (!equal(a.items()[i], b.items()[i])) return less(a.items()[i], b.items()[i]);
    }
    return a.items().size() < b.items().size();
  }
  return type_error(
      fmt::format("'<' not supported between instances of '{}' and '{}'", a.type_name(), b.type_name()));
}

namespace {

Result<bool> contains(const Value& container, const Value& item) {
  switch (container.kind()) {
    case ValueKind::kString:
      DECANT_RETURN_IF_ERROR(item.is_undefined()
                                 ? type_error("'in <string>' requires string as left operand, not "
                                              "Undefined")
                                 : ok_status());
      if (!item.is_string()) {
        return type_error(
            fmt::format("'in <string>' requires string as left operand, not {}", item.type_name()));
      }
      return container.as_string().find(item.as_string()) != std::string_view::npos;
    case ValueKind::kDict:
      if (!hashable(item)) return type_error(fmt::format("unhashable type: '{}'", item.type_name()));
      return container.find(item) != nullptr;
    case ValueKind::kUndefined:
    case ValueKind::kList:
    case ValueKind::kTuple:
    case ValueKind::kView:
    case ValueKind::kRange:
    case ValueKind::kIterator: {
      DECANT_ASSIGN(const auto items, iterate(container));
      return std::any_of(items.begin(), items.end(), [&](const Value& v) { return equal(v, item); });
    }
    default:
      return type_error(fmt::format("argument of type '{}' is not iterable", container.type_name()));
  }
}

}  // namespace

Result<bool> compare(Op op, const Value& a, const Value& b) {
  switch (op) {
    case Op::kEq:
      return equal(a, b);
    case Op::kNe:
      return !equal(a, b);
    case Op::kIn:
      return contains(b, a);
    case Op::kNotIn: {
      DECANT_ASSIGN(const bool found, contains(b, a));
      return !found;
    }
    case Op::kLt:
      return less(a, b);
    case Op::kGt:
      return less(b, a);
    default:
      break;
  }
  // Either order of the operands leaves NaN out; <= is < or ==.
  DECANT_ASSIGN(const bool strictly, op == Op::kLe ? less(a, b) : less(b, a));
  return strictly || equal(a, b);
}

}  // namespace decant::text
