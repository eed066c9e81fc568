#pragma once

#include "base/status.h"
#include "text/template/ast.h"
#include "text/template/value.h"

namespace decant::text {

class Interpreter;

/// -v, +v, not v.
Result<Value> unary(Op op, const Value& v);
/// + - * / // % ** with Python's meaning for every pair of types. Integers beyond 64 bits are OverflowErrors.
Result<Value> binary(Interpreter& interpreter, Op op, const Value& a, const Value& b);
/// == != < <= > >= in, not in.
Result<bool> compare(Op op, const Value& a, const Value& b);
/// a < b, a TypeError when Python has no order for the two.
Result<bool> less(const Value& a, const Value& b);

}  // namespace decant::text
