#pragma once

#include <string_view>

#include "text/template/value.h"

namespace decant::text {

/// The functions every template has: range, dict, namespace, raise_exception, strftime_now, joiner, cycler.
/// Null for any other name.
const Value* find_global(std::string_view name);

}  // namespace decant::text
