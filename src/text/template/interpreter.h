#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "text/template/ast.h"
#include "text/template/callable.h"
#include "text/template/render_options.h"
#include "text/template/value.h"

namespace decant::text {

/// Variables of one block; names are looked up outwards through `parent`.
struct Scope {
  Scope* parent = nullptr;
  bool captured = false;  // a macro or loop refers to it, so it lives to the end of the render
  std::vector<std::pair<Symbol, Value>> variables;
};

/// Runs one program once. Not for several threads.
class Interpreter {
 public:
  Interpreter(const Program& program, const Value& variables, const RenderOptions& options);
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  /// Renders into `out`; `spans` are the generation blocks in code points of the output.
  Status run(std::string& out, std::vector<std::pair<size_t, size_t>>& spans);
  /// Where the first error happened.
  Position error_at() const { return error_at_; }

  const RenderOptions& options() const { return options_; }
  const Program& program() const { return program_; }

  /// Budgets; every built-in that makes texts or lists charges what it makes.
  Status charge_steps(uint64_t n);
  Status charge_bytes(size_t n);
  /// A text of this length, charged; an error beyond RenderLimits::output_bytes.
  Result<Value> make_string(std::string text, bool markup = false);
  Result<Value> make_list(std::vector<Value> items);
  Value make_namespace();

  Result<Value> call(const Value& callee, CallArgs args);
  Result<Value> apply_filter(std::string_view name, const Value& input, CallArgs args);
  Result<bool> apply_test(std::string_view name, const Value& subject, CallArgs args);

  // For macros and loops.
  Result<Value> run_macro(const Stmt& macro, Scope* closure, CallArgs args);
  Result<Value> run_loop(const Stmt& loop, Scope* outer, const Value& iterable, uint32_t depth);
  /// Whether `item` passes the loop's `if`.
  Result<bool> loop_accepts(const Stmt& loop, Scope* outer, const Value& item);

 private:
  friend class ScopeHolder;
  enum class Flow : uint8_t { kNormal, kBreak, kContinue };

  Status exec_body(const Body& body, Scope* scope);
  Status exec(const Stmt& s, Scope* scope);
  Status exec_for(const Stmt& s, Scope* scope);
  Status exec_loop(const Stmt& s, Scope* outer, const Value& iterable, uint32_t depth);
  Status exec_if(const Stmt& s, Scope* scope);
  Status exec_set_block(const Stmt& s, Scope* scope);
  Status exec_call_block(const Stmt& s, Scope* scope);
  Status exec_with(const Stmt& s, Scope* scope);
  Status exec_generation(const Stmt& s, Scope* scope);
  /// Runs the body with its output going into the returned text.
  Result<Value> capture(const Body& body, Scope* scope);
  Status write(std::string_view text);
  Status assign(const Expr& target, const Value& value, Scope* scope);
  void set(Scope* scope, Symbol name, Value value);
  void define_macro(const Stmt& s, Scope* scope);

  Result<Value> eval(const Expr& e, Scope* scope);
  Result<Value> eval_kind(const Expr& e, Scope* scope);
  Result<Value> eval_name(const Expr& e, Scope* scope);
  Result<Value> eval_items(const Expr& e, Scope* scope);
  Result<Value> eval_dict(const Expr& e, Scope* scope);
  Result<Value> eval_subscript(const Expr& e, Scope* scope);
  Result<Value> eval_slice(const Value& object, const Expr& e, Scope* scope);
  Result<Value> eval_call(const Expr& e, Scope* scope, const Value* caller = nullptr);
  Result<Value> eval_filter(const Expr& e, Scope* scope, const Value* input);
  Result<Value> eval_test(const Expr& e, Scope* scope);
  Result<Value> eval_binary(const Expr& e, Scope* scope);
  Result<Value> eval_compare(const Expr& e, Scope* scope);
  Result<Value> eval_concat(const Expr& e, Scope* scope);
  Result<Value> eval_conditional(const Expr& e, Scope* scope);
  Result<CallArgs> eval_arguments(const Arguments& a, Scope* scope);

  const Program& program_;
  const Value& variables_;
  const RenderOptions& options_;
  std::vector<std::unique_ptr<Scope>> scopes_;
  std::vector<Value> namespaces_;
  std::string* out_ = nullptr;
  std::string* root_out_ = nullptr;
  size_t root_counted_ = 0, root_code_points_ = 0;
  std::vector<std::pair<size_t, size_t>>* spans_ = nullptr;
  Flow flow_ = Flow::kNormal;
  uint64_t steps_ = 0;
  size_t bytes_ = 0;
  uint32_t depth_ = 0;      // calls
  uint32_t recursion_ = 0;  // evaluator frames
  Position error_at_;
};

}  // namespace decant::text
