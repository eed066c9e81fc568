#include "ir/ops/joined_types.h"

namespace decant::ir {

std::optional<ValueKind> joined_kind(ValueKind a, ValueKind b) {
  if (a == b) return a;
  const auto either = [&](ValueKind x, ValueKind y) { return (a == x && b == y) || (a == y && b == x); };
  if (either(ValueKind::kTensor, ValueKind::kOptional)) return ValueKind::kOptional;
  if (either(ValueKind::kSequence, ValueKind::kOptionalSequence)) return ValueKind::kOptionalSequence;
  return std::nullopt;
}

}  // namespace decant::ir
