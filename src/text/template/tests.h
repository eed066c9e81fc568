#pragma once

#include <string_view>

#include "base/status.h"
#include "text/template/callable.h"
#include "text/template/value.h"

namespace decant::text {

/// subject is name(args...).
using TestFunction = Result<bool> (*)(Interpreter&, const Value& subject, CallArgs args);

/// Null when there is no such test.
const TestFunction* find_test(std::string_view name);

}  // namespace decant::text
