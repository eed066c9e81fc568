#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/template/ast.h"
#include "text/template/lexer.h"

namespace decant::text {

/// Recursive descent over the tokens of one template; expressions in parser_expr.cc, statements in parser.cc.
class Parser {
 public:
  Parser(std::vector<Token> tokens, Position& error_at);
  Result<Program> run();

 private:
  // Bounds of what one template may nest; the evaluator recurses as deep.
  static constexpr uint32_t kMaxNesting = 200;
  static constexpr uint32_t kMaxHeight = 400;

  const Token& current() const { return tokens_[pos_]; }
  const Token& ahead() const { return tokens_[std::min(pos_ + 1, tokens_.size() - 1)]; }
  Token take();
  bool is(TokenKind kind) const { return current().kind == kind; }
  bool is_op(std::string_view op) const { return is(TokenKind::kOperator) && current().text == op; }
  bool is_name(std::string_view name) const { return is(TokenKind::kName) && current().text == name; }
  bool skip_op(std::string_view op);
  bool skip_name(std::string_view name);
  Status expect_op(std::string_view op);
  Status expect_name(std::string_view name);
  Status expect(TokenKind kind, std::string_view what);
  Status fail(std::string_view message) { return fail_at(message, current().at); }
  Status fail_at(std::string_view message, Position at);
  Symbol symbol(const std::string& name);

  // Expressions.
  using Names = std::initializer_list<std::string_view>;
  Result<ExprPtr> parse_expression(bool with_conditional = true);
  Result<ExprPtr> parse_conditional();
  Result<ExprPtr> parse_or();
  Result<ExprPtr> parse_and();
  Result<ExprPtr> parse_not();
  Result<ExprPtr> parse_compare();
  Result<ExprPtr> parse_binary(int level);
  Result<ExprPtr> parse_unary(bool with_filter);
  Result<ExprPtr> parse_primary(bool namespace_target);
  Result<ExprPtr> parse_name(bool namespace_target);
  Result<ExprPtr> parse_postfix(ExprPtr node);
  Result<ExprPtr> parse_filters_and_tests(ExprPtr node);
  Result<ExprPtr> parse_filter_chain(ExprPtr node, bool start_inline);
  Result<ExprPtr> parse_test(ExprPtr node);
  Result<ExprPtr> parse_subscript(ExprPtr node);
  Result<ExprPtr> parse_subscript_part();
  Result<ExprPtr> parse_call(ExprPtr node);
  Result<std::unique_ptr<Arguments>> parse_arguments();
  Result<ExprPtr> parse_list();
  Result<ExprPtr> parse_dict();
  struct TupleRules {
    bool simple = false;  // names and literals only
    bool with_conditional = true;
    bool in_parentheses = false;
    bool namespace_target = false;
    std::string_view end_name{};  // a name that ends the tuple
  };
  Result<ExprPtr> parse_tuple(TupleRules rules);
  Result<ExprPtr> parse_target(std::string_view end_name, bool with_namespace);
  Result<Symbol> parse_target_name(std::string* name = nullptr);
  Result<std::string> parse_dotted_name();
  ExprPtr make(ExprKind kind, Position at);
  Status add_item(Expr& parent, ExprPtr item);
  Status check_target(const Expr& target);

  // Statements.
  Result<Body> parse_body(Names end_tags);
  Result<Body> parse_block_body(Names end_tags, bool drop_end);
  Status parse_statement(Body& out, Names end_tags);
  Status unknown_tag(const Token& tag, Names end_tags);
  Result<Stmt> parse_for(Stmt s);
  Result<Stmt> parse_if(Stmt s);
  Result<Stmt> parse_set(Stmt s);
  Result<Stmt> parse_with(Stmt s);
  Result<Stmt> parse_macro(Stmt s);
  Result<Stmt> parse_call_block(Stmt s);
  Result<Stmt> parse_filter_block(Stmt s);
  Result<Stmt> parse_named_block(Stmt s);
  Result<Stmt> parse_loader(Stmt s);
  Status parse_print(Body& out, Position at);
  Status parse_signature(Stmt& s);

  std::vector<Token> tokens_;
  size_t pos_ = 0;
  Position& error_at_;
  Program program_;
  std::unordered_map<std::string, Symbol> symbols_;
  uint32_t nesting_ = 0;
  uint32_t loops_ = 0;  // loops around the current statement, within its macro
  // In the branch of an `if`, with no scope of its own between: unknown filters wait until they are reached.
  bool lenient_ = false;
  // Unknown filters and tests met elsewhere; the left side of a conditional turns out to be a branch only
  // afterwards.
  std::vector<std::pair<std::string, Position>> unknown_;
  struct Uses {
    bool caller = false, varargs = false, kwargs = false;
  };
  std::vector<Uses> macros_;

  friend class NestingGuard;
  friend class ScopeGuard;
};

/// Counts the parser's recursion; `ok` is false beyond the bound.
class NestingGuard {
 public:
  explicit NestingGuard(Parser& parser) : parser_(parser), ok(++parser.nesting_ <= Parser::kMaxNesting) {}
  ~NestingGuard() { --parser_.nesting_; }
  NestingGuard(const NestingGuard&) = delete;
  NestingGuard& operator=(const NestingGuard&) = delete;

 private:
  Parser& parser_;

 public:
  const bool ok;
};

/// Parses what follows as a scope of its own (or, lenient, as the branch of an `if`).
class ScopeGuard {
 public:
  ScopeGuard(Parser& parser, bool lenient, uint32_t loops)
      : parser_(parser), lenient_(parser.lenient_), loops_(parser.loops_) {
    parser.lenient_ = lenient;
    parser.loops_ = loops;
  }
  ~ScopeGuard() {
    parser_.lenient_ = lenient_;
    parser_.loops_ = loops_;
  }
  ScopeGuard(const ScopeGuard&) = delete;
  ScopeGuard& operator=(const ScopeGuard&) = delete;

 private:
  Parser& parser_;
  bool lenient_;
  uint32_t loops_;
};

}  // namespace decant::text
