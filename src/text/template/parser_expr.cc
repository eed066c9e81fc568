#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "text/template/filters.h"
#include "text/template/parser_state.h"
#include "text/template/tests.h"

namespace decant::text {
namespace {

std::optional<Op> compare_op(const Token& t) {
  if (t.kind != TokenKind::kOperator) return std::nullopt;
  if (t.text == "==") return Op::kEq;
  if (t.text == "!=") return Op::kNe;
  if (t.text == "<") return Op::kLt;
  if (t.text == "<=") return Op::kLe;
  if (t.text == ">") return Op::kGt;
  if (t.text == ">=") return Op::kGe;
  return std::nullopt;
}

// Binary operators from the loosest level to the tightest; ~ stands between the first two.
constexpr int kConcatLevel = 1;
constexpr int kTightest = 3;
std::optional<Op> binary_op(const Token& t, int level) {
  if (t.kind != TokenKind::kOperator) return std::nullopt;
  if (level == 0 && t.text == "+") return Op::kAdd;
  if (level == 0 && t.text == "-") return Op::kSub;
  if (level == 2 && t.text == "*") return Op::kMul;
  if (level == 2 && t.text == "/") return Op::kDiv;
  if (level == 2 && t.text == "//") return Op::kFloorDiv;
  if (level == 2 && t.text == "%") return Op::kMod;
  if (level == kTightest && t.text == "**") return Op::kPow;
  return std::nullopt;
}

Value integer_constant(const std::string& text) {
  if (text.size() > 2 && text[0] == '0' && text[1] > '9') {
    const int base = (text[1] | 0x20) == 'x' ? 16 : (text[1] | 0x20) == 'o' ? 8 : 2;
    int64_t value = 0;
    std::from_chars(text.data() + 2, text.data() + text.size(), value, base);
    return Value::integer(value);
  }
  return Value::big_integer(text);
}

}  // namespace

ExprPtr Parser::make(ExprKind kind, Position at) {
  auto e = std::make_unique<Expr>();
  e->kind = kind;
  e->at = at;
  return e;
}

Status Parser::add_item(Expr& parent, ExprPtr item) {
  if (item != nullptr) parent.height = std::max(parent.height, item->height + 1);
  parent.items.push_back(std::move(item));
  if (parent.height > kMaxHeight) return fail_at("expression nested too deep", parent.at);
  return ok_status();
}

Result<ExprPtr> Parser::parse_expression(bool with_conditional) {
  NestingGuard guard(*this);
  if (!guard.ok) return fail("expression nested too deep");
  return with_conditional ? parse_conditional() : parse_or();
}

Result<ExprPtr> Parser::parse_conditional() {
  NestingGuard guard(*this);
  if (!guard.ok) return fail("expression nested too deep");
  const size_t known = unknown_.size();
  DECANT_ASSIGN(ExprPtr left, parse_or());
  if (is_name("if")) unknown_.resize(known);
  while (is_name("if")) {
    auto node = make(ExprKind::kConditional, take().at);
    const ScopeGuard lenient(*this, true, loops_);
    DECANT_RETURN_IF_ERROR(add_item(*node, std::move(left)));
    DECANT_ASSIGN(auto test, parse_or());
    DECANT_RETURN_IF_ERROR(add_item(*node, std::move(test)));
    ExprPtr otherwise;
    if (skip_name("else")) {
      DECANT_ASSIGN(otherwise, parse_conditional());
    }
    DECANT_RETURN_IF_ERROR(add_item(*node, std::move(otherwise)));
    left = std::move(node);
  }
  return left;
}

Result<ExprPtr> Parser::parse_or() {
  DECANT_ASSIGN(ExprPtr left, parse_and());
  while (is_name("or")) {
    auto node = make(ExprKind::kOr, take().at);
    DECANT_RETURN_IF_ERROR(add_item(*node, std::move(left)));
    DECANT_ASSIGN(auto right, parse_and());
    DECANT_RETURN_IF_ERROR(add_item(*node, std::move(right)));
    left = std::move(node);
  }
  return left;
}

Result<ExprPtr> Parser::parse_and() {
  DECANT_ASSIGN(ExprPtr left, parse_not());
  while (is_name("and")) {
    auto node = make(ExprKind::kAnd, take().at);
    DECANT_RETURN_IF_ERROR(add_item(*node, std::move(left)));
    DECANT_ASSIGN(auto right, parse_not());
    DECANT_RETURN_IF_ERROR(add_item(*node, std::move(right)));
    left = std::move(node);
  }
  return left;
}

Result<ExprPtr> Parser::parse_not() {
  NestingGuard guard(*this);
  if (!guard.ok) return fail("expression nested too deep");
  if (!is_name("not")) return parse_compare();
  auto node = make(ExprKind::kUnary, take().at);
  node->op = Op::kNot;
  DECANT_ASSIGN(auto inner, parse_not());
  DECANT_RETURN_IF_ERROR(add_item(*node, std::move(inner)));
  return node;
}

Result<ExprPtr> Parser::parse_compare() {
  const Position at = current().at;
  DECANT_ASSIGN(ExprPtr left, parse_binary(0));
  ExprPtr node;
  while (true) {
    std::optional<Op> op = compare_op(current());
    if (op) {
      take();
    } else if (skip_name("in")) {
      op = Op::kIn;
    } else if (is_name("not") && ahead().kind == TokenKind::kName && ahead().text == "in") {
      take();
      take();
      op = Op::kNotIn;
    } else {
      break;
    }
    if (node == nullptr) {
      node = make(ExprKind::kCompare, at);
      DECANT_RETURN_IF_ERROR(add_item(*node, std::move(left)));
    }
    node->ops.push_back(*op);
    DECANT_ASSIGN(auto right, parse_binary(0));
    DECANT_RETURN_IF_ERROR(add_item(*node, std::move(right)));
  }
  return node != nullptr ? std::move(node) : std::move(left);
}

Result<ExprPtr> Parser::parse_binary(int level) {
  if (level > kTightest) return parse_unary(true);
  const Position at = current().at;
  DECANT_ASSIGN(ExprPtr left, parse_binary(level + 1));
  if (level == kConcatLevel) {
    if (!is_op("~")) return left;
    auto node = make(ExprKind::kConcat, at);
    DECANT_RETURN_IF_ERROR(add_item(*node, std::move(left)));
    while (skip_op("~")) {
      DECANT_ASSIGN(auto right, parse_binary(level + 1));
      DECANT_RETURN_IF_ERROR(add_item(*node, std::move(right)));
    }
    return node;
  }
  while (const auto op = binary_op(current(), level)) {
    auto node = make(ExprKind::kBinary, take().at);
    node->op = *op;
    DECANT_RETURN_IF_ERROR(add_item(*node, std::move(left)));
    DECANT_ASSIGN(auto right, parse_binary(level + 1));
    DECANT_RETURN_IF_ERROR(add_item(*node, std::move(right)));
    left = std::move(node);
  }
  return left;
}

Result<ExprPtr> Parser::parse_unary(bool with_filter) {
  NestingGuard guard(*this);
  if (!guard.ok) return fail("expression nested too deep");
  ExprPtr node;
  if (is_op("-") || is_op("+")) {
    node = make(ExprKind::kUnary, current().at);
    node->op = take().text == "-" ? Op::kNeg : Op::kPos;
    DECANT_ASSIGN(auto inner, parse_unary(false));
    DECANT_RETURN_IF_ERROR(add_item(*node, std::move(inner)));
  } else {
    DECANT_ASSIGN(node, parse_primary(false));
  }
  DECANT_ASSIGN(node, parse_postfix(std::move(node)));
  return with_filter ? parse_filters_and_tests(std::move(node)) : Result<ExprPtr>(std::move(node));
}

Result<ExprPtr> Parser::parse_name(bool namespace_target) {
  const Token token = take();
  auto node = make(ExprKind::kConst, token.at);
  if (token.text == "true" || token.text == "True" || token.text == "false" || token.text == "False") {
    node->constant = Value::boolean((token.text[0] | 0x20) == 't');
  } else if (token.text != "none" && token.text != "None") {
    node->kind = ExprKind::kName;
    node->symbol = symbol(token.text);
    for (Uses& uses : macros_) {
      uses.caller |= token.text == "caller";
      uses.varargs |= token.text == "varargs";
      uses.kwargs |= token.text == "kwargs";
    }
    if (namespace_target && skip_op(".")) {
      node->kind = ExprKind::kNamespaceTarget;
      if (!is(TokenKind::kName)) return fail("expected an attribute name");
      node->name = take().text;
    }
  }
  return node;
}

Result<ExprPtr> Parser::parse_primary(bool namespace_target) {
  const Position at = current().at;
  switch (current().kind) {
    case TokenKind::kName:
      return parse_name(namespace_target);
    case TokenKind::kString: {
      auto node = make(ExprKind::kConst, at);
      std::string text = take().text;
      while (is(TokenKind::kString)) text += take().text;
      node->constant = Value::string(std::move(text));
      return node;
    }
    case TokenKind::kInteger: {
      auto node = make(ExprKind::kConst, at);
      node->constant = integer_constant(take().text);
      return node;
    }
    case TokenKind::kFloat: {
      auto node = make(ExprKind::kConst, at);
      const std::string text = take().text;
      double d = 0;
      std::from_chars(text.data(), text.data() + text.size(), d);
      node->constant = Value::real(d);
      return node;
    }
    default:
      break;
  }
  if (skip_op("(")) {
    DECANT_ASSIGN(auto node, parse_tuple({.in_parentheses = true}));
    DECANT_RETURN_IF_ERROR(expect_op(")"));
    return node;
  }
  if (is_op("[")) return parse_list();
  if (is_op("{")) return parse_dict();
  return fail(fmt::format("unexpected '{}'", describe(current())));
}

Result<ExprPtr> Parser::parse_tuple(TupleRules rules) {
  const Position at = current().at;
  std::vector<ExprPtr> items;
  bool is_tuple = false;
  while (true) {
    if (!items.empty()) DECANT_RETURN_IF_ERROR(expect_op(","));
    if (is(TokenKind::kPrintEnd) || is(TokenKind::kBlockEnd) || is_op(")")) break;
    if (!rules.end_name.empty() && is_name(rules.end_name)) break;
    DECANT_ASSIGN(auto item, rules.simple ? parse_primary(rules.namespace_target)
                                          : parse_expression(rules.with_conditional));
    items.push_back(std::move(item));
    if (!is_op(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && !items.empty()) return std::move(items[0]);
  if (!is_tuple && !rules.in_parentheses) {
    return fail(fmt::format("Expected an expression, got '{}'", describe(current())));
  }
  auto node = make(ExprKind::kTuple, at);
  for (auto& item : items) DECANT_RETURN_IF_ERROR(add_item(*node, std::move(item)));
  return node;
}

Result<ExprPtr> Parser::parse_list() {
  auto node = make(ExprKind::kList, take().at);
  while (!is_op("]")) {
    if (!node->items.empty()) DECANT_RETURN_IF_ERROR(expect_op(","));
    if (is_op("]")) break;
    DECANT_ASSIGN(auto item, parse_expression());
    DECANT_RETURN_IF_ERROR(add_item(*node, std::move(item)));
  }
  take();
  return node;
}

Result<ExprPtr> Parser::parse_dict() {
  auto node = make(ExprKind::kDict, take().at);
  while (!is_op("}")) {
    if (!node->items.empty()) DECANT_RETURN_IF_ERROR(expect_op(","));
    if (is_op("}")) break;
    DECANT_ASSIGN(auto key, parse_expression());
    DECANT_RETURN_IF_ERROR(expect_op(":"));
    DECANT_ASSIGN(auto value, parse_expression());
    DECANT_RETURN_IF_ERROR(add_item(*node, std::move(key)));
    DECANT_RETURN_IF_ERROR(add_item(*node, std::move(value)));
  }
  take();
  return node;
}

Result<ExprPtr> Parser::parse_postfix(ExprPtr node) {
  while (true) {
    if (is_op(".") || is_op("[")) {
      DECANT_ASSIGN(node, parse_subscript(std::move(node)));
    } else if (is_op("(")) {
      DECANT_ASSIGN(node, parse_call(std::move(node)));
    } else {
      return node;
    }
  }
}

Result<ExprPtr> Parser::parse_filters_and_tests(ExprPtr node) {
  while (true) {
    if (is_op("|")) {
      DECANT_ASSIGN(node, parse_filter_chain(std::move(node), false));
    } else if (is_name("is")) {
      DECANT_ASSIGN(node, parse_test(std::move(node)));
    } else if (is_op("(")) {
      DECANT_ASSIGN(node, parse_call(std::move(node)));
    } else {
      return node;
    }
  }
}

Result<ExprPtr> Parser::parse_subscript(ExprPtr object) {
  const Position at = current().at;
  if (take().text == ".") {
    auto node = make(ExprKind::kAttribute, at);
    DECANT_RETURN_IF_ERROR(add_item(*node, std::move(object)));
    if (is(TokenKind::kName)) {
      node->name = take().text;
      return node;
    }
    if (!is(TokenKind::kInteger)) return fail("expected name or number");
    node->kind = ExprKind::kSubscript;
    auto index = make(ExprKind::kConst, current().at);
    index->constant = integer_constant(take().text);
    DECANT_RETURN_IF_ERROR(add_item(*node, std::move(index)));
    return node;
  }
  auto node = make(ExprKind::kSubscript, at);
  DECANT_RETURN_IF_ERROR(add_item(*node, std::move(object)));
  auto tuple = make(ExprKind::kTuple, at);
  while (!is_op("]")) {
    if (!tuple->items.empty()) DECANT_RETURN_IF_ERROR(expect_op(","));
    DECANT_ASSIGN(auto part, parse_subscript_part());
    DECANT_RETURN_IF_ERROR(add_item(*tuple, std::move(part)));
  }
  take();
  DECANT_RETURN_IF_ERROR(
      add_item(*node, tuple->items.size() == 1 ? std::move(tuple->items[0]) : std::move(tuple)));
  return node;
}

Result<ExprPtr> Parser::parse_subscript_part() {
  const Position at = current().at;
  ExprPtr first;
  if (!is_op(":")) {
    DECANT_ASSIGN(first, parse_expression());
    if (!is_op(":")) return first;
  }
  auto slice = make(ExprKind::kSlice, at);
  DECANT_RETURN_IF_ERROR(add_item(*slice, std::move(first)));
  for (int part = 0; part < 2; ++part) {
    ExprPtr bound;
    if (skip_op(":") && !is_op(":") && !is_op("]") && !is_op(",")) {
      DECANT_ASSIGN(bound, parse_expression());
    }
    DECANT_RETURN_IF_ERROR(add_item(*slice, std::move(bound)));
  }
  return slice;
}

Result<std::unique_ptr<Arguments>> Parser::parse_arguments() {
  auto args = std::make_unique<Arguments>();
  const Position at = current().at;
  DECANT_RETURN_IF_ERROR(expect_op("("));
  const auto bad = [&] { return fail_at("invalid syntax for function call expression", at); };
  bool first = true;
  while (!is_op(")")) {
    if (!first) {
      DECANT_RETURN_IF_ERROR(expect_op(","));
      if (is_op(")")) break;
    }
    first = false;
    if (skip_op("*")) {
      if (args->more_positional || args->more_named) return bad();
      DECANT_ASSIGN(args->more_positional, parse_expression());
    } else if (skip_op("**")) {
      if (args->more_named) return bad();
      DECANT_ASSIGN(args->more_named, parse_expression());
    } else if (is(TokenKind::kName) && ahead().kind == TokenKind::kOperator && ahead().text == "=") {
      if (args->more_named) return bad();
      std::string name = take().text;
      take();
      DECANT_ASSIGN(auto value, parse_expression());
      args->named.emplace_back(std::move(name), std::move(value));
    } else {
      if (args->more_positional || args->more_named || !args->named.empty()) return bad();
      DECANT_ASSIGN(auto value, parse_expression());
      args->positional.push_back(std::move(value));
    }
  }
  take();
  return args;
}

Result<ExprPtr> Parser::parse_call(ExprPtr callee) {
  auto node = make(ExprKind::kCall, current().at);
  DECANT_RETURN_IF_ERROR(add_item(*node, std::move(callee)));
  DECANT_ASSIGN(node->arguments, parse_arguments());
  return node;
}

Result<std::string> Parser::parse_dotted_name() {
  if (!is(TokenKind::kName)) return fail(fmt::format("expected token 'name', got '{}'", describe(current())));
  std::string name = take().text;
  while (skip_op(".")) {
    if (!is(TokenKind::kName)) return fail("expected a name after the dot");
    name += "." + take().text;
  }
  return name;
}

Result<ExprPtr> Parser::parse_filter_chain(ExprPtr node, bool start_inline) {
  while (start_inline || is_op("|")) {
    if (!start_inline) take();
    start_inline = false;
    auto filter = make(ExprKind::kFilter, current().at);
    DECANT_ASSIGN(filter->name, parse_dotted_name());
    if (!lenient_ && find_filter(filter->name) == nullptr) {
      unknown_.emplace_back(fmt::format("No filter named '{}'.", filter->name), filter->at);
    }
    DECANT_RETURN_IF_ERROR(add_item(*filter, std::move(node)));
    filter->arguments = std::make_unique<Arguments>();
    if (is_op("(")) {
      DECANT_ASSIGN(filter->arguments, parse_arguments());
    }
    node = std::move(filter);
  }
  return node;
}

Result<ExprPtr> Parser::parse_test(ExprPtr subject) {
  auto node = make(ExprKind::kTest, take().at);
  const bool negated = skip_name("not");
  DECANT_ASSIGN(node->name, parse_dotted_name());
  if (!lenient_ && find_test(node->name) == nullptr) {
    unknown_.emplace_back(fmt::format("No test named '{}'.", node->name), node->at);
  }
  DECANT_RETURN_IF_ERROR(add_item(*node, std::move(subject)));
  node->arguments = std::make_unique<Arguments>();
  const bool starts_argument =
      (is(TokenKind::kName) && !is_name("else") && !is_name("or") && !is_name("and")) ||
      is(TokenKind::kString) || is(TokenKind::kInteger) || is(TokenKind::kFloat) || is_op("[") || is_op("{");
  if (is_op("(")) {
    DECANT_ASSIGN(node->arguments, parse_arguments());
  } else if (starts_argument) {
    if (is_name("is")) return fail("You cannot chain multiple tests with is");
    DECANT_ASSIGN(auto argument, parse_primary(false));
    DECANT_ASSIGN(argument, parse_postfix(std::move(argument)));
    node->arguments->positional.push_back(std::move(argument));
  }
  if (!negated) return node;
  auto inverse = make(ExprKind::kUnary, node->at);
  inverse->op = Op::kNot;
  DECANT_RETURN_IF_ERROR(add_item(*inverse, std::move(node)));
  return inverse;
}

Status Parser::check_target(const Expr& target) {
  if (target.kind == ExprKind::kTuple) {
    for (const auto& item : target.items) DECANT_RETURN_IF_ERROR(check_target(*item));
    return ok_status();
  }
  if (target.kind == ExprKind::kName || target.kind == ExprKind::kNamespaceTarget) return ok_status();
  return fail_at("can't assign to this expression", target.at);
}

Result<ExprPtr> Parser::parse_target(std::string_view end_name, bool with_namespace) {
  DECANT_ASSIGN(auto target,
                parse_tuple({.simple = true, .namespace_target = with_namespace, .end_name = end_name}));
  DECANT_RETURN_IF_ERROR(check_target(*target));
  return target;
}

Result<Symbol> Parser::parse_target_name(std::string* name) {
  if (!is(TokenKind::kName)) return fail(fmt::format("expected token 'name', got '{}'", describe(current())));
  const Token token = take();
  if (name != nullptr) *name = token.text;
  return symbol(token.text);
}

}  // namespace decant::text
