#include <fmt/format.h>

#include <memory>

#include "text/template/errors.h"
#include "text/template/filters.h"
#include "text/template/globals.h"
#include "text/template/interpreter.h"
#include "text/template/loop.h"
#include "text/template/members.h"
#include "text/template/operators.h"
#include "text/template/repr.h"
#include "text/template/tests.h"

namespace decant::text {
namespace {

constexpr uint32_t kMaxRecursion = 1500;

}  // namespace

Result<Value> Interpreter::eval(const Expr& e, Scope* scope) {
  if (e.kind == ExprKind::kConst) return e.constant;
  DECANT_RETURN_IF_ERROR(charge_steps(1));
  if (recursion_ >= kMaxRecursion) return limit_error("the template recurses too deep");
  ++recursion_;
  auto result = eval_kind(e, scope);
  --recursion_;
  if (!result.ok() && error_at_.line == 0) error_at_ = e.at;
  return result;
}

Result<Value> Interpreter::eval_kind(const Expr& e, Scope* scope) {
  switch (e.kind) {
    case ExprKind::kConst:
      return e.constant;
    case ExprKind::kName:
    case ExprKind::kNamespaceTarget:
      return eval_name(e, scope);
    case ExprKind::kList:
    case ExprKind::kTuple:
      return eval_items(e, scope);
    case ExprKind::kDict:
      return eval_dict(e, scope);
    case ExprKind::kAttribute: {
      DECANT_ASSIGN(const Value object, eval(*e.items[0], scope));
      return get_attribute(*this, object, e.name);
    }
    case ExprKind::kSubscript:
      return eval_subscript(e, scope);
    case ExprKind::kSlice:
      return type_error("a slice stands alone");
    case ExprKind::kCall:
      return eval_call(e, scope);
    case ExprKind::kFilter:
      return eval_filter(e, scope, nullptr);
    case ExprKind::kTest:
      return eval_test(e, scope);
    case ExprKind::kUnary: {
      DECANT_ASSIGN(const Value v, eval(*e.items[0], scope));
      return unary(e.op, v);
    }
    case ExprKind::kBinary:
      return eval_binary(e, scope);
    case ExprKind::kAnd:
    case ExprKind::kOr: {
      DECANT_ASSIGN(Value left, eval(*e.items[0], scope));
      if (truthy(left) == (e.kind == ExprKind::kOr)) return left;
      return eval(*e.items[1], scope);
    }
    case ExprKind::kCompare:
      return eval_compare(e, scope);
    case ExprKind::kConcat:
      return eval_concat(e, scope);
    case ExprKind::kConditional:
      return eval_conditional(e, scope);
  }
  return internal_error("InternalError: unknown expression");
}

Result<Value> Interpreter::eval_name(const Expr& e, Scope* scope) {
  for (const Scope* s = scope; s != nullptr; s = s->parent) {
    for (const auto& [symbol, value] : s->variables) {
      if (symbol == e.symbol) return value;
    }
  }
  const std::string& name = program_.names[e.symbol];
  if (variables_.is_dict()) {
    if (const Value* v = variables_.find(name)) return *v;
  }
  if (const Value* v = find_global(name)) return *v;
  return Value::undefined(fmt::format("'{}' is undefined", name));
}

Result<Value> Interpreter::eval_items(const Expr& e, Scope* scope) {
  std::vector<Value> items;
  items.reserve(e.items.size());
  for (const auto& item : e.items) {
    DECANT_ASSIGN(Value v, eval(*item, scope));
    items.push_back(std::move(v));
  }
  DECANT_RETURN_IF_ERROR(charge_bytes(items.size() * sizeof(Value)));
  return e.kind == ExprKind::kTuple ? checked_tuple(std::move(items)) : checked_list(std::move(items));
}

Result<Value> Interpreter::eval_dict(const Expr& e, Scope* scope) {
  std::vector<std::pair<Value, Value>> entries;
  for (size_t i = 0; i + 1 < e.items.size(); i += 2) {
    DECANT_ASSIGN(Value key, eval(*e.items[i], scope));
    DECANT_ASSIGN(Value value, eval(*e.items[i + 1], scope));
    if (!hashable(key)) return type_error(fmt::format("unhashable type: '{}'", key.type_name()));
    entries.emplace_back(std::move(key), std::move(value));
  }
  DECANT_RETURN_IF_ERROR(charge_bytes(e.items.size() * sizeof(Value)));
  return checked_dict(std::move(entries));
}

Result<Value> Interpreter::eval_subscript(const Expr& e, Scope* scope) {
  DECANT_ASSIGN(const Value object, eval(*e.items[0], scope));
  if (e.items[1]->kind == ExprKind::kSlice) return eval_slice(object, *e.items[1], scope);
  DECANT_ASSIGN(const Value key, eval(*e.items[1], scope));
  return get_item(*this, object, key);
}

Result<Value> Interpreter::eval_slice(const Value& object, const Expr& e, Scope* scope) {
  Value bounds[3];
  for (size_t i = 0; i < 3 && i < e.items.size(); ++i) {
    if (e.items[i] == nullptr) continue;
    DECANT_ASSIGN(bounds[i], eval(*e.items[i], scope));
  }
  return get_slice(*this, object, bounds[0], bounds[1], bounds[2]);
}

Result<CallArgs> Interpreter::eval_arguments(const Arguments& a, Scope* scope) {
  CallArgs args;
  for (const auto& e : a.positional) {
    DECANT_ASSIGN(Value v, eval(*e, scope));
    args.positional.push_back(std::move(v));
  }
  for (const auto& [name, e] : a.named) {
    DECANT_ASSIGN(Value v, eval(*e, scope));
    args.named.emplace_back(name, std::move(v));
  }
  if (a.more_positional != nullptr) {
    DECANT_ASSIGN(const Value v, eval(*a.more_positional, scope));
    DECANT_ASSIGN(const auto items, iterate(v));
    args.positional.insert(args.positional.end(), items.begin(), items.end());
  }
  if (a.more_named != nullptr) {
    DECANT_ASSIGN(const Value v, eval(*a.more_named, scope));
    if (!v.is_dict()) return type_error("argument after ** must be a mapping");
    for (const auto& [key, value] : v.entries()) {
      if (!key.is_string()) return type_error("keywords must be strings");
      args.named.emplace_back(std::string(key.as_string()), value);
    }
  }
  return args;
}

Result<Value> Interpreter::eval_call(const Expr& e, Scope* scope, const Value* caller) {
  DECANT_ASSIGN(const Value callee, eval(*e.items[0], scope));
  DECANT_ASSIGN(CallArgs args, eval_arguments(*e.arguments, scope));
  if (caller != nullptr) args.named.emplace_back("caller", *caller);
  return call(callee, std::move(args));
}

Result<Value> Interpreter::call(const Value& callee, CallArgs args) {
  if (callee.is(ValueKind::kCallable)) return callee.as_callable().call(*this, std::move(args));
  if (callee.is_undefined()) return raise(callee.undefined_kind(), callee.undefined_message());
  if (callee.is(ValueKind::kLoop)) {
    const LoopState& loop = *callee.as_loop();
    if (!loop.statement->recursive) {
      return type_error("The loop must have the 'recursive' marker to be called recursively.");
    }
    if (args.positional.size() != 1) return type_error("loop() takes one iterable");
    return run_loop(*loop.statement, loop.outer, args.positional[0], loop.depth0 + 1);
  }
  return type_error(fmt::format("'{}' object is not callable", callee.type_name()));
}

Result<Value> Interpreter::eval_filter(const Expr& e, Scope* scope, const Value* input) {
  Value subject;
  if (e.items[0] == nullptr) {
    if (input != nullptr) subject = *input;
  } else if (input != nullptr) {
    DECANT_ASSIGN(subject, eval_filter(*e.items[0], scope, input));
  } else {
    DECANT_ASSIGN(subject, eval(*e.items[0], scope));
  }
  DECANT_ASSIGN(CallArgs args, eval_arguments(*e.arguments, scope));
  auto result = apply_filter(e.name, subject, std::move(args));
  if (!result.ok() && error_at_.line == 0) error_at_ = e.at;
  return result;
}

Result<Value> Interpreter::eval_test(const Expr& e, Scope* scope) {
  DECANT_ASSIGN(const Value subject, eval(*e.items[0], scope));
  DECANT_ASSIGN(CallArgs args, eval_arguments(*e.arguments, scope));
  DECANT_ASSIGN(const bool holds, apply_test(e.name, subject, std::move(args)));
  return Value::boolean(holds);
}

Result<Value> Interpreter::apply_filter(std::string_view name, const Value& input, CallArgs args) {
  const FilterFunction* filter = find_filter(name);
  if (filter == nullptr) return runtime_error(fmt::format("No filter named '{}' found.", name));
  return (*filter)(*this, input, std::move(args));
}

Result<bool> Interpreter::apply_test(std::string_view name, const Value& subject, CallArgs args) {
  const TestFunction* test = find_test(name);
  if (test == nullptr) return runtime_error(fmt::format("No test named '{}' found.", name));
  DECANT_RETURN_IF_ERROR(charge_bytes(subject.weight()));
  return (*test)(*this, subject, std::move(args));
}

Result<Value> Interpreter::eval_binary(const Expr& e, Scope* scope) {
  DECANT_ASSIGN(const Value left, eval(*e.items[0], scope));
  DECANT_ASSIGN(const Value right, eval(*e.items[1], scope));
  return binary(*this, e.op, left, right);
}

Result<Value> Interpreter::eval_compare(const Expr& e, Scope* scope) {
  DECANT_ASSIGN(Value left, eval(*e.items[0], scope));
  for (size_t i = 0; i < e.ops.size(); ++i) {
    DECANT_ASSIGN(Value right, eval(*e.items[i + 1], scope));
    DECANT_RETURN_IF_ERROR(charge_bytes(left.weight() + right.weight()));
    DECANT_ASSIGN(const bool holds, compare(e.ops[i], left, right));
    if (!holds) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Result<Value> Interpreter::eval_concat(const Expr& e, Scope* scope) {
  std::string text;
  for (const auto& item : e.items) {
    DECANT_ASSIGN(const Value v, eval(*item, scope));
    DECANT_RETURN_IF_ERROR(append_text(text, v, options_.limits.output_bytes));
  }
  return make_string(std::move(text));
}

Result<Value> Interpreter::eval_conditional(const Expr& e, Scope* scope) {
  DECANT_ASSIGN(const Value test, eval(*e.items[1], scope));
  if (truthy(test)) return eval(*e.items[0], scope);
  if (e.items[2] != nullptr) return eval(*e.items[2], scope);
  return Value::undefined("the inline if-expression evaluated to false and no else section was defined.");
}

}  // namespace decant::text
