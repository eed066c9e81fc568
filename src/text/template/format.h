#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/template/callable.h"
#include "text/template/value.h"

namespace decant::text {

/// Python's `text % values`; `mapping` serves %(name)s, and counts as the one value otherwise.
Result<Value> format_percent(Interpreter& interpreter, std::string_view text,
                             const std::vector<Value>& values, const Value* mapping);

/// Python's str.format: {}, {0}, {name}, {0.attribute}, {0[key]}, !r and !s, and format specs of texts and
/// numbers.
Result<Value> format_braces(Interpreter& interpreter, std::string_view text, const CallArgs& args);

}  // namespace decant::text
