#pragma once

#include <string_view>

#include "base/status.h"
#include "text/template/callable.h"
#include "text/template/value.h"

namespace decant::text {

/// object.name: a method first, then an item of that name; undefined when there is neither.
Result<Value> get_attribute(Interpreter& interpreter, const Value& object, std::string_view name);
/// object[key]: an item first, then a method of that name; undefined when there is neither.
Result<Value> get_item(Interpreter& interpreter, const Value& object, const Value& key);
/// object[start:stop:step], none for a bound left out.
Result<Value> get_slice(Interpreter& interpreter, const Value& object, const Value& start, const Value& stop,
                        const Value& step);

/// Python's methods of str, list, tuple, dict. Those that would change a list or dict exist, and are
/// SecurityErrors.
using Method = Result<Value> (*)(Interpreter&, const Value& self, CallArgs args);
struct MethodEntry {
  std::string_view name;
  Method method;  // null: would change its object
};
const MethodEntry* find_string_method(std::string_view name);
const MethodEntry* find_container_method(const Value& self, std::string_view name);

}  // namespace decant::text
