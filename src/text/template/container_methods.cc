#include <algorithm>
#include <cmath>
#include <span>

#include "text/template/errors.h"
#include "text/template/interpreter.h"
#include "text/template/members.h"
#include "text/template/repr.h"

namespace decant::text {
namespace {

Result<Value> dict_get(Interpreter&, const Value& self, CallArgs args) {
  Parameters p("get", {"key", "default"}, 1);
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  if (!hashable(p[0])) return type_error("unhashable type: '" + std::string(p[0].type_name()) + "'");
  const Value* v = self.find(p[0]);
  return v != nullptr ? *v : p.get(1, Value::none());
}

Result<Value> dict_items(Interpreter& in, const Value& self, CallArgs args) {
  Parameters p("items", {});
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  std::vector<Value> items;
  for (const auto& [key, value] : self.entries()) items.push_back(Value::tuple({key, value}));
  DECANT_RETURN_IF_ERROR(in.charge_bytes(items.size() * 3 * sizeof(Value)));
  return Value::view("dict_items", std::move(items));
}

template <bool kKeys>
Result<Value> dict_side(Interpreter& in, const Value& self, CallArgs args) {
  Parameters p(kKeys ? "keys" : "values", {});
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  std::vector<Value> items;
  for (const auto& [key, value] : self.entries()) items.push_back(kKeys ? key : value);
  DECANT_RETURN_IF_ERROR(in.charge_bytes(items.size() * sizeof(Value)));
  return Value::view(kKeys ? "dict_keys" : "dict_values", std::move(items));
}

Result<Value> copy(Interpreter&, const Value& self, CallArgs) { return self; }

Result<Value> list_index(Interpreter&, const Value& self, CallArgs args) {
  Parameters p("index", {"value"}, 1);
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  for (size_t i = 0; i < self.items().size(); ++i) {
    if (equal(self.items()[i], p[0])) return Value::integer(static_cast<int64_t>(i));
  }
  return value_error("the value is not in the list");
}

Result<Value> list_count(Interpreter&, const Value& self, CallArgs args) {
  Parameters p("count", {"value"}, 1);
  DECANT_RETURN_IF_ERROR(p.bind(std::move(args)));
  return Value::integer(std::count_if(self.items().begin(), self.items().end(),
                                      [&](const Value& v) { return equal(v, p[0]); }));
}

Result<Value> double_is_integer(Interpreter&, const Value& self, CallArgs) {
  return Value::boolean(std::floor(self.as_double()) == self.as_double());
}

constexpr MethodEntry kDictMethods[] = {
    {"get", dict_get},   {"items", dict_items},   {"keys", dict_side<true>}, {"values", dict_side<false>},
    {"copy", copy},      {"clear", nullptr},      {"pop", nullptr},          {"popitem", nullptr},
    {"update", nullptr}, {"setdefault", nullptr},
};
constexpr MethodEntry kListMethods[] = {
    {"index", list_index}, {"count", list_count}, {"copy", copy},       {"append", nullptr},
    {"clear", nullptr},    {"pop", nullptr},      {"reverse", nullptr}, {"insert", nullptr},
    {"sort", nullptr},     {"extend", nullptr},   {"remove", nullptr},
};
constexpr MethodEntry kTupleMethods[] = {{"index", list_index}, {"count", list_count}};
constexpr MethodEntry kDoubleMethods[] = {{"is_integer", double_is_integer}};

}  // namespace

const MethodEntry* find_container_method(const Value& self, std::string_view name) {
  std::span<const MethodEntry> methods;
  if (self.is_dict()) methods = kDictMethods;
  if (self.is(ValueKind::kList)) methods = kListMethods;
  if (self.is(ValueKind::kTuple)) methods = kTupleMethods;
  if (self.is(ValueKind::kDouble)) methods = kDoubleMethods;
  const auto it = std::find_if(methods.begin(), methods.end(), [&](const auto& m) { return m.name == name; });
  return it == methods.end() ? nullptr : &*it;
}

}  // namespace decant::text
