#include "text/template/interpreter.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/template/errors.h"
#include "text/template/loop.h"
#include "text/template/repr.h"
#include "text/template/unicode.h"

namespace decant::text {
namespace {

class MacroCallable : public Callable {
 public:
  MacroCallable(const Stmt& macro, Scope* closure) : macro_(macro), closure_(closure) {}
  std::string_view type_name() const override { return "Macro"; }
  std::string_view name() const override { return macro_.text; }
  Result<Value> call(Interpreter& interpreter, CallArgs args) override {
    return interpreter.run_macro(macro_, closure_, std::move(args));
  }

 private:
  const Stmt& macro_;
  Scope* closure_;
};

void capture_scope(Scope* scope) {
  for (; scope != nullptr && !scope->captured; scope = scope->parent) scope->captured = true;
}

}  // namespace

/// Opens a scope and drops it at the end, unless something still refers to it.
class ScopeHolder {
 public:
  ScopeHolder(Interpreter& interpreter, Scope* parent) : interpreter_(interpreter) {
    interpreter.scopes_.push_back(std::make_unique<Scope>());
    scope_ = interpreter.scopes_.back().get();
    scope_->parent = parent;
  }
  ~ScopeHolder() {
    if (!scope_->captured && interpreter_.scopes_.back().get() == scope_) interpreter_.scopes_.pop_back();
  }
  ScopeHolder(const ScopeHolder&) = delete;
  ScopeHolder& operator=(const ScopeHolder&) = delete;
  Scope* get() const { return scope_; }

 private:
  Interpreter& interpreter_;
  Scope* scope_;
};

Interpreter::Interpreter(const Program& program, const Value& variables, const RenderOptions& options)
    : program_(program), variables_(variables), options_(options) {}

// Namespaces may refer to each other in circles, and macros to the scopes they are in.
Interpreter::~Interpreter() {
  for (auto& scope : scopes_) scope->variables.clear();
  for (Value& ns : namespaces_) ns.attributes().clear();
}

Status Interpreter::run(std::string& out, std::vector<std::pair<size_t, size_t>>& spans) {
  out_ = root_out_ = &out;
  spans_ = &spans;
  ScopeHolder root(*this, nullptr);
  root.get()->captured = true;
  return exec_body(program_.body, root.get());
}

Status Interpreter::charge_steps(uint64_t n) {
  steps_ += n;
  if (steps_ <= options_.limits.steps) return ok_status();
  return limit_error(fmt::format("the template took more than {} steps", options_.limits.steps));
}

Status Interpreter::charge_bytes(size_t n) {
  if (n <= options_.limits.allocated_bytes - bytes_) {
    bytes_ += n;
    return ok_status();
  }
  return limit_error(fmt::format("the template used more than {} bytes", options_.limits.allocated_bytes));
}

Result<Value> Interpreter::make_string(std::string text, bool markup) {
  if (text.size() > options_.limits.output_bytes) {
    return limit_error(fmt::format("a text of more than {} bytes", options_.limits.output_bytes));
  }
  DECANT_RETURN_IF_ERROR(charge_bytes(text.size() + 64));
  return Value::string(std::move(text), markup);
}

Result<Value> Interpreter::make_list(std::vector<Value> items) {
  DECANT_RETURN_IF_ERROR(charge_bytes(items.size() * sizeof(Value)));
  return checked_list(std::move(items));
}

Value Interpreter::make_namespace() {
  namespaces_.push_back(Value::new_namespace());
  return namespaces_.back();
}

Status Interpreter::write(std::string_view text) {
  if (text.size() + out_->size() > options_.limits.output_bytes) {
    return limit_error(fmt::format("more than {} bytes of output", options_.limits.output_bytes));
  }
  DECANT_RETURN_IF_ERROR(charge_bytes(text.size()));
  out_->append(text);
  return ok_status();
}

void Interpreter::set(Scope* scope, Symbol name, Value value) {
  for (auto& [symbol, old] : scope->variables) {
    if (symbol == name) {
      old = std::move(value);
      return;
    }
  }
  scope->variables.emplace_back(name, std::move(value));
}

Status Interpreter::exec_body(const Body& body, Scope* scope) {
  for (const Stmt& s : body) {
    Status status = exec(s, scope);
    if (!status.ok()) {
      if (error_at_.line == 0) error_at_ = s.at;
      return status;
    }
    if (flow_ != Flow::kNormal) return ok_status();
  }
  return ok_status();
}

Status Interpreter::exec(const Stmt& s, Scope* scope) {
  DECANT_RETURN_IF_ERROR(charge_steps(1));
  switch (s.kind) {
    case StmtKind::kText:
      return write(s.text);
    case StmtKind::kOutput: {
      DECANT_ASSIGN(const Value v, eval(*s.exprs[0], scope));
      if (v.is_string()) return write(v.as_string());
      DECANT_ASSIGN(const std::string text, to_text(v, options_.limits.output_bytes));
      return write(text);
    }
    case StmtKind::kFor:
      return exec_for(s, scope);
    case StmtKind::kIf:
      return exec_if(s, scope);
    case StmtKind::kSet: {
      DECANT_ASSIGN(const Value v, eval(*s.exprs[0], scope));
      return assign(*s.target, v, scope);
    }
    case StmtKind::kSetBlock:
      return exec_set_block(s, scope);
    case StmtKind::kMacro:
      define_macro(s, scope);
      return ok_status();
    case StmtKind::kCallBlock:
      return exec_call_block(s, scope);
    case StmtKind::kFilterBlock: {
      DECANT_ASSIGN(const Value body, capture(s.body, scope));
      DECANT_ASSIGN(const Value v, eval_filter(*s.exprs[0], scope, &body));
      DECANT_ASSIGN(const std::string text, to_text(v, options_.limits.output_bytes));
      return write(text);
    }
    case StmtKind::kWith:
      return exec_with(s, scope);
    case StmtKind::kGeneration:
      return exec_generation(s, scope);
    case StmtKind::kScope: {
      const ScopeHolder inner(*this, scope);
      return exec_body(s.body, inner.get());
    }
    case StmtKind::kBreak:
      flow_ = Flow::kBreak;
      return ok_status();
    case StmtKind::kContinue:
      flow_ = Flow::kContinue;
      return ok_status();
    case StmtKind::kLoader:
      return type_error(
          fmt::format("'{}' needs a template loader, which chat templates do not have", s.text));
  }
  return ok_status();
}

Status Interpreter::exec_if(const Stmt& s, Scope* scope) {
  for (const auto& [test, body] : s.arms) {
    DECANT_ASSIGN(const Value v, eval(*test, scope));
    if (v.is_undefined() && v.undefined_kind() != "UndefinedError") {
      return raise(v.undefined_kind(), v.undefined_message());
    }
    if (truthy(v)) return exec_body(body, scope);
  }
  return exec_body(s.else_body, scope);
}

Status Interpreter::exec_for(const Stmt& s, Scope* scope) {
  DECANT_ASSIGN(const Value iterable, eval(*s.exprs[0], scope));
  return exec_loop(s, scope, iterable, 0);
}

Status Interpreter::exec_loop(const Stmt& s, Scope* outer, const Value& iterable, uint32_t depth) {
  DECANT_ASSIGN(auto items, iterate(iterable));
  DECANT_RETURN_IF_ERROR(charge_bytes(items.size() * sizeof(Value)));
  auto state = std::make_shared<LoopState>();
  state->statement = &s;
  state->outer = outer;
  state->items = std::move(items);
  state->depth0 = depth;
  const Value loop = Value::loop(state);
  while (true) {
    DECANT_ASSIGN(const bool more, state->reach(*this, state->index0));
    if (!more) break;
    const ScopeHolder inner(*this, outer);
    set(inner.get(), program_.loop, loop);
    DECANT_RETURN_IF_ERROR(assign(*s.target, state->accepted[state->index0], inner.get()));
    DECANT_RETURN_IF_ERROR(exec_body(s.body, inner.get()));
    const Flow flow = std::exchange(flow_, Flow::kNormal);
    if (flow == Flow::kBreak) return ok_status();
    ++state->index0;
    DECANT_RETURN_IF_ERROR(charge_steps(1));
  }
  if (!state->accepted.empty()) {
    --state->index0;
    return ok_status();
  }
  const ScopeHolder inner(*this, outer);
  return exec_body(s.else_body, inner.get());
}

Result<bool> Interpreter::loop_accepts(const Stmt& loop, Scope* outer, const Value& item) {
  DECANT_RETURN_IF_ERROR(charge_steps(1));
  const ScopeHolder inner(*this, outer);
  DECANT_RETURN_IF_ERROR(assign(*loop.target, item, inner.get()));
  DECANT_ASSIGN(const Value v, eval(*loop.condition, inner.get()));
  return truthy(v);
}

Result<Value> Interpreter::run_loop(const Stmt& loop, Scope* outer, const Value& iterable, uint32_t depth) {
  if (depth_ >= options_.limits.depth) return limit_error("loops recurse too deep");
  ++depth_;
  std::string text;
  std::string* const saved = std::exchange(out_, &text);
  Status status = exec_loop(loop, outer, iterable, depth);
  out_ = saved;
  --depth_;
  if (!status.ok()) return status;
  return make_string(std::move(text));
}

Result<Value> Interpreter::capture(const Body& body, Scope* scope) {
  std::string text;
  std::string* const saved = std::exchange(out_, &text);
  const ScopeHolder inner(*this, scope);
  Status status = exec_body(body, inner.get());
  out_ = saved;
  if (!status.ok()) return status;
  return make_string(std::move(text));
}

Status Interpreter::exec_set_block(const Stmt& s, Scope* scope) {
  DECANT_ASSIGN(Value v, capture(s.body, scope));
  if (!s.exprs.empty()) {
    DECANT_ASSIGN(v, eval_filter(*s.exprs[0], scope, &v));
  }
  return assign(*s.target, v, scope);
}

Status Interpreter::exec_with(const Stmt& s, Scope* scope) {
  const ScopeHolder inner(*this, scope);
  std::vector<Value> values;
  for (const auto& e : s.exprs) {
    DECANT_ASSIGN(Value v, eval(*e, scope));
    values.push_back(std::move(v));
  }
  for (size_t i = 0; i < values.size(); ++i) set(inner.get(), s.symbols[i], std::move(values[i]));
  return exec_body(s.body, inner.get());
}

Status Interpreter::exec_generation(const Stmt& s, Scope* scope) {
  DECANT_ASSIGN(const Value body, capture(s.body, scope));
  const std::string_view fresh = std::string_view(*root_out_).substr(root_counted_);
  root_code_points_ += count_code_points(fresh);
  root_counted_ = root_out_->size();
  spans_->emplace_back(root_code_points_, root_code_points_ + body.code_points());
  return write(body.as_string());
}

void Interpreter::define_macro(const Stmt& s, Scope* scope) {
  capture_scope(scope);
  set(scope, s.symbol, Value::callable(std::make_shared<MacroCallable>(s, scope)));
}

Status Interpreter::exec_call_block(const Stmt& s, Scope* scope) {
  capture_scope(scope);
  const Value caller = Value::callable(std::make_shared<MacroCallable>(s, scope));
  DECANT_ASSIGN(const Value v, eval_call(*s.exprs[0], scope, &caller));
  DECANT_ASSIGN(const std::string text, to_text(v, options_.limits.output_bytes));
  return write(text);
}

Result<Value> Interpreter::run_macro(const Stmt& macro, Scope* closure, CallArgs args) {
  if (depth_ >= options_.limits.depth) {
    return limit_error(fmt::format("macros call each other more than {} deep", options_.limits.depth));
  }
  const ScopeHolder scope(*this, closure);
  const auto& parameters = macro.parameters;
  if (args.positional.size() > parameters.size() && !macro.uses_varargs) {
    return type_error(
        fmt::format("macro '{}' takes not more than {} argument(s)", macro.text, parameters.size()));
  }
  if (macro.uses_caller) {
    Value caller = Value::undefined("No caller defined");
    args.take("caller", caller);
    set(scope.get(), program_.caller, std::move(caller));
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& p = parameters[i];
    Value value;
    if (i < args.positional.size()) {
      value = std::move(args.positional[i]);
    } else if (!args.take(p.name, value)) {
      if (p.default_value != nullptr) {
        DECANT_ASSIGN(value, eval(*p.default_value, scope.get()));
      } else {
        value = Value::undefined(fmt::format("parameter '{}' was not provided", p.name));
      }
    }
    set(scope.get(), p.symbol, std::move(value));
  }
  if (macro.uses_varargs) {
    std::vector<Value> rest;
    for (size_t i = parameters.size(); i < args.positional.size(); ++i) rest.push_back(args.positional[i]);
    set(scope.get(), program_.varargs, Value::tuple(std::move(rest)));
  }
  if (macro.uses_kwargs) {
    std::vector<std::pair<Value, Value>> rest;
    for (auto& [name, value] : args.named) rest.emplace_back(Value::string(name), std::move(value));
    DECANT_ASSIGN(Value kwargs, checked_dict(std::move(rest)));
    set(scope.get(), program_.kwargs, std::move(kwargs));
  } else if (!args.named.empty()) {
    return type_error(
        fmt::format("macro '{}' takes no keyword argument '{}'", macro.text, args.named.front().first));
  }
  ++depth_;
  auto result = capture(macro.body, scope.get());
  --depth_;
  return result;
}

Status Interpreter::assign(const Expr& target, const Value& value, Scope* scope) {
  if (target.kind == ExprKind::kName) {
    set(scope, target.symbol, value);
    return ok_status();
  }
  if (target.kind == ExprKind::kNamespaceTarget) {
    DECANT_ASSIGN(const Value ns, eval_name(target, scope));
    if (!ns.is(ValueKind::kNamespace))
      return runtime_error("cannot assign attribute on non-namespace object");
    if (target.name.starts_with('_')) {
      return security_error(
          fmt::format("Chat templates cannot store underscore-prefixed attributes on a namespace, but got "
                      "'{}'. Please rename "
                      "the attribute.",
                      target.name));
    }
    for (auto& [name, old] : ns.attributes()) {
      if (name == target.name) {
        old = value;
        return ok_status();
      }
    }
    ns.attributes().emplace_back(target.name, value);
    return ok_status();
  }
  DECANT_ASSIGN(const auto items, iterate(value));
  if (items.size() < target.items.size()) {
    return value_error(
        fmt::format("not enough values to unpack (expected {}, got {})", target.items.size(), items.size()));
  }
  if (items.size() > target.items.size()) {
    return value_error(fmt::format("too many values to unpack (expected {})", target.items.size()));
  }
  for (size_t i = 0; i < items.size(); ++i) DECANT_RETURN_IF_ERROR(assign(*target.items[i], items[i], scope));
  return ok_status();
}

}  // namespace decant::text
