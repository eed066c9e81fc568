#include "text/template/tests.h"

#include <algorithm>
#include <utility>

#include "text/template/errors.h"
#include "text/template/filters.h"
#include "text/template/interpreter.h"
#include "text/template/members.h"
#include "text/template/operators.h"
#include "text/template/repr.h"

namespace decant::text {
namespace {

template <bool (*kCheck)(const Value&)>
Result<bool> plain(Interpreter&, const Value& v, CallArgs args) {
  Parameters p("test", {});
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  return kCheck(v);
}

bool is_defined(const Value& v) { return !v.is_undefined(); }
bool is_undefined(const Value& v) { return v.is_undefined(); }
bool is_none(const Value& v) { return v.is_none(); }
bool is_boolean(const Value& v) { return v.is(ValueKind::kBool); }
bool is_false(const Value& v) { return v.is(ValueKind::kBool) && !v.as_bool(); }
bool is_true(const Value& v) { return v.is(ValueKind::kBool) && v.as_bool(); }
bool is_integer(const Value& v) { return v.is(ValueKind::kInt) || v.is(ValueKind::kBigInt); }
bool is_float(const Value& v) { return v.is(ValueKind::kDouble); }
bool is_number(const Value& v) { return v.is_number() || v.is(ValueKind::kBigInt); }
bool is_string(const Value& v) { return v.is_string(); }
bool is_mapping(const Value& v) { return v.is_dict(); }
bool is_markup(const Value& v) { return v.is_markup(); }
bool is_sequence(const Value& v) {
  return v.is_string() || v.is_sequence() || v.is_dict() || v.is_undefined() || v.is(ValueKind::kRange);
}
bool is_iterable(const Value& v) {
  return is_sequence(v) || v.is(ValueKind::kIterator) || v.is(ValueKind::kView) || v.is(ValueKind::kLoop);
}
bool is_callable(const Value& v) {
  return v.is(ValueKind::kCallable) || v.is(ValueKind::kLoop) || v.is_undefined();
}

Result<bool> of_case(Interpreter& in, const Value& v, const char* method) {
  DECANT_ASSIGN(std::string text, to_text(v, in.options().limits.output_bytes));
  const Value s = Value::string(std::move(text));
  DECANT_ASSIGN(const Value result, find_string_method(method)->method(in, s, CallArgs()));
  return result.as_bool();
}
Result<bool> is_upper(Interpreter& in, const Value& v, CallArgs) { return of_case(in, v, "isupper"); }
Result<bool> is_lower(Interpreter& in, const Value& v, CallArgs) { return of_case(in, v, "islower"); }

template <Op kOp>
Result<bool> compares(Interpreter& in, const Value& v, CallArgs args) {
  Parameters p("test", {"other"}, 1);
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  DECANT_RETURN_IF_ERROR(in.charge_bytes(p[0].weight()));
  return compare(kOp, v, p[0]);
}

Result<bool> same_as(Interpreter&, const Value& v, CallArgs args) {
  Parameters p("sameas", {"other"}, 1);
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  return v.same_object(p[0]);
}

Result<bool> remainder_is(Interpreter& in, const Value& v, const Value& divisor, int64_t wanted) {
  DECANT_ASSIGN(const Value r, binary(in, Op::kMod, v, divisor));
  return equal(r, Value::integer(wanted));
}

template <int64_t kRemainder>
Result<bool> parity(Interpreter& in, const Value& v, CallArgs) {
  return remainder_is(in, v, Value::integer(2), kRemainder);
}

Result<bool> divisible_by(Interpreter& in, const Value& v, CallArgs args) {
  Parameters p("divisibleby", {"num"}, 1);
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  return remainder_is(in, v, p[0], 0);
}

Result<bool> names_filter(Interpreter&, const Value& v, CallArgs) {
  return v.is_string() && find_filter(v.as_string()) != nullptr;
}
Result<bool> names_test(Interpreter&, const Value& v, CallArgs) {
  return v.is_string() && find_test(v.as_string()) != nullptr;
}

constexpr std::pair<std::string_view, TestFunction> kTests[] = {
    {"!=", compares<Op::kNe>},
    {"<", compares<Op::kLt>},
    {"<=", compares<Op::kLe>},
    {"==", compares<Op::kEq>},
    {">", compares<Op::kGt>},
    {">=", compares<Op::kGe>},
    {"boolean", plain<is_boolean>},
    {"callable", plain<is_callable>},
    {"defined", plain<is_defined>},
    {"divisibleby", divisible_by},
    {"eq", compares<Op::kEq>},
    {"equalto", compares<Op::kEq>},
    {"escaped", plain<is_markup>},
    {"even", parity<0>},
    {"false", plain<is_false>},
    {"filter", names_filter},
    {"float", plain<is_float>},
    {"ge", compares<Op::kGe>},
    {"greaterthan", compares<Op::kGt>},
    {"gt", compares<Op::kGt>},
    {"in", compares<Op::kIn>},
    {"integer", plain<is_integer>},
    {"iterable", plain<is_iterable>},
    {"le", compares<Op::kLe>},
    {"lessthan", compares<Op::kLt>},
    {"lower", is_lower},
    {"lt", compares<Op::kLt>},
    {"mapping", plain<is_mapping>},
    {"ne", compares<Op::kNe>},
    {"none", plain<is_none>},
    {"number", plain<is_number>},
    {"odd", parity<1>},
    {"sameas", same_as},
    {"sequence", plain<is_sequence>},
    {"string", plain<is_string>},
    {"test", names_test},
    {"true", plain<is_true>},
    {"undefined", plain<is_undefined>},
    {"upper", is_upper},
};

}  // namespace

const TestFunction* find_test(std::string_view name) {
  const auto it =
      std::find_if(std::begin(kTests), std::end(kTests), [&](const auto& t) { return t.first == name; });
  return it == std::end(kTests) ? nullptr : &it->second;
}

}  // namespace decant::text
