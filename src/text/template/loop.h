#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "text/template/ast.h"
#include "text/template/value.h"

namespace decant::text {

class Interpreter;
struct Scope;

/// What `loop` stands for inside a for block. Items are looked at one ahead, so that a loop's `if` is
/// evaluated as the loop reaches it; only `length` and what is counted from the end look at all of them.
struct LoopState {
  const Stmt* statement = nullptr;
  Scope* outer = nullptr;
  std::vector<Value> items;
  size_t next_raw = 0;          // in items
  std::vector<Value> accepted;  // items that passed, the current one and those looked ahead at included
  size_t index0 = 0;
  uint32_t depth0 = 0;
  std::vector<Value> last_changed;
  bool changed_called = false;

  /// Makes accepted[i] exist; false when the items run out before.
  Result<bool> reach(Interpreter& interpreter, size_t i);
};

/// loop.NAME, nullopt when there is no such attribute.
Result<std::optional<Value>> loop_attribute(Interpreter& interpreter, const Value& loop,
                                            std::string_view name);

}  // namespace decant::text
