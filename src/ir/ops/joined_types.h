#pragma once

#include <optional>

#include "ir/graph.h"

namespace decant::ir {

/// The kind of a value that is sometimes of one and sometimes of another; nothing when none covers both.
std::optional<ValueKind> joined_kind(ValueKind a, ValueKind b);

}  // namespace decant::ir
