#include "text/template/parser.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/template/parser_state.h"

namespace decant::text {

Parser::Parser(std::vector<Token> tokens, Position& error_at)
    : tokens_(std::move(tokens)), error_at_(error_at) {
  program_.loop = symbol("loop");
  program_.caller = symbol("caller");
  program_.varargs = symbol("varargs");
  program_.kwargs = symbol("kwargs");
}

Token Parser::take() {
  Token token = current();
  if (pos_ + 1 < tokens_.size()) ++pos_;
  return token;
}

bool Parser::skip_op(std::string_view op) {
  if (!is_op(op)) return false;
  take();
  return true;
}

bool Parser::skip_name(std::string_view name) {
  if (!is_name(name)) return false;
  take();
  return true;
}

Status Parser::expect_op(std::string_view op) {
  if (skip_op(op)) return ok_status();
  return fail(fmt::format("expected token '{}', got '{}'", op, describe(current())));
}

Status Parser::expect_name(std::string_view name) {
  if (skip_name(name)) return ok_status();
  return fail(fmt::format("expected token '{}', got '{}'", name, describe(current())));
}

Status Parser::expect(TokenKind kind, std::string_view what) {
  if (!is(kind)) return fail(fmt::format("expected token '{}', got '{}'", what, describe(current())));
  take();
  return ok_status();
}

Status Parser::fail_at(std::string_view message, Position at) {
  error_at_ = at;
  return syntax_error(message);
}

Symbol Parser::symbol(const std::string& name) {
  const auto [it, added] = symbols_.try_emplace(name, static_cast<Symbol>(program_.names.size()));
  if (added) program_.names.push_back(name);
  return it->second;
}

Result<Program> Parser::run() {
  DECANT_ASSIGN(program_.body, parse_body({}));
  if (!unknown_.empty()) return fail_at(unknown_[0].first, unknown_[0].second);
  return std::move(program_);
}

// Statements up to one of the end tags, which stays the current token; to the end of the template when there
// are none.
Result<Body> Parser::parse_body(Names end_tags) {
  NestingGuard guard(*this);
  if (!guard.ok) return fail("statements nested too deep");
  Body body;
  while (!is(TokenKind::kEnd)) {
    const Position at = current().at;
    if (is(TokenKind::kText)) {
      body.push_back({.kind = StmtKind::kText, .at = at, .text = take().text});
    } else if (is(TokenKind::kPrintBegin)) {
      take();
      DECANT_ASSIGN(auto value, parse_tuple({}));
      Stmt& output = body.emplace_back(Stmt{.kind = StmtKind::kOutput, .at = at});
      output.exprs.push_back(std::move(value));
      DECANT_RETURN_IF_ERROR(expect(TokenKind::kPrintEnd, "end of print statement"));
    } else {
      DECANT_RETURN_IF_ERROR(expect(TokenKind::kBlockBegin, "begin of statement block"));
      if (is(TokenKind::kName) &&
          std::find(end_tags.begin(), end_tags.end(), current().text) != end_tags.end()) {
        return body;
      }
      DECANT_RETURN_IF_ERROR(parse_statement(body, end_tags));
      DECANT_RETURN_IF_ERROR(expect(TokenKind::kBlockEnd, "end of statement block"));
    }
  }
  if (end_tags.size() == 0) return body;
  return fail(fmt::format("Unexpected end of template. Jinja was looking for the following tags: '{}'.",
                          fmt::join(end_tags, "' or '")));
}

Result<Body> Parser::parse_block_body(Names end_tags, bool drop_end) {
  skip_op(":");
  DECANT_RETURN_IF_ERROR(expect(TokenKind::kBlockEnd, "end of statement block"));
  DECANT_ASSIGN(Body body, parse_body(end_tags));
  if (drop_end) take();
  return body;
}

Status Parser::unknown_tag(const Token& tag, Names end_tags) {
  std::string message = fmt::format("Encountered unknown tag '{}'.", tag.text);
  if (end_tags.size() > 0) {
    message += fmt::format(" Jinja was looking for the following tags: '{}'.", fmt::join(end_tags, "' or '"));
  }
  return fail_at(message, tag.at);
}

Status Parser::parse_statement(Body& out, Names end_tags) {
  if (!is(TokenKind::kName)) return fail("tag name expected");
  const Token tag = take();
  Stmt s{.kind = StmtKind::kScope, .at = tag.at};
  using Handler = Result<Stmt> (Parser::*)(Stmt);
  static constexpr std::pair<std::string_view, Handler> kHandlers[] = {
      {"for", &Parser::parse_for},           {"if", &Parser::parse_if},
      {"set", &Parser::parse_set},           {"with", &Parser::parse_with},
      {"macro", &Parser::parse_macro},       {"call", &Parser::parse_call_block},
      {"block", &Parser::parse_named_block}, {"filter", &Parser::parse_filter_block},
      {"include", &Parser::parse_loader},    {"import", &Parser::parse_loader},
      {"from", &Parser::parse_loader},       {"extends", &Parser::parse_loader},
  };
  for (const auto& [name, handler] : kHandlers) {
    if (tag.text != name) continue;
    s.text = tag.text;
    DECANT_ASSIGN(Stmt parsed, (this->*handler)(std::move(s)));
    out.push_back(std::move(parsed));
    return ok_status();
  }
  if (tag.text == "print") return parse_print(out, tag.at);
  if (tag.text == "break" || tag.text == "continue") {
    if (loops_ == 0) return fail_at(fmt::format("'{}' outside loop", tag.text), tag.at);
    s.kind = tag.text == "break" ? StmtKind::kBreak : StmtKind::kContinue;
  } else if (tag.text == "generation") {
    const ScopeGuard scope(*this, false, 0);
    s.kind = StmtKind::kGeneration;
    DECANT_ASSIGN(s.body, parse_block_body({"endgeneration"}, true));
  } else if (tag.text == "autoescape") {
    const ScopeGuard scope(*this, false, loops_);
    DECANT_ASSIGN(auto ignored, parse_expression());
    s.exprs.push_back(std::move(ignored));
    DECANT_ASSIGN(s.body, parse_block_body({"endautoescape"}, true));
  } else {
    return unknown_tag(tag, end_tags);
  }
  out.push_back(std::move(s));
  return ok_status();
}

Result<Stmt> Parser::parse_for(Stmt s) {
  s.kind = StmtKind::kFor;
  DECANT_ASSIGN(s.target, parse_target("in", false));
  if (s.target->kind == ExprKind::kName && s.target->symbol == program_.loop) {
    return fail_at("can't assign to special loop variable in for-loop target", s.target->at);
  }
  DECANT_RETURN_IF_ERROR(expect_name("in"));
  DECANT_ASSIGN(auto iterable, parse_tuple({.with_conditional = false, .end_name = "recursive"}));
  s.exprs.push_back(std::move(iterable));
  const ScopeGuard scope(*this, false, loops_);
  if (skip_name("if")) {
    DECANT_ASSIGN(s.condition, parse_expression());
  }
  s.recursive = skip_name("recursive");
  {
    const ScopeGuard loop(*this, false, loops_ + 1);
    DECANT_ASSIGN(s.body, parse_block_body({"endfor", "else"}, false));
  }
  if (take().text == "else") {
    DECANT_ASSIGN(s.else_body, parse_block_body({"endfor"}, true));
  }
  return s;
}

Result<Stmt> Parser::parse_if(Stmt s) {
  s.kind = StmtKind::kIf;
  const ScopeGuard branch(*this, true, loops_);
  while (true) {
    DECANT_ASSIGN(auto test, parse_tuple({.with_conditional = false}));
    DECANT_ASSIGN(Body body, parse_block_body({"elif", "else", "endif"}, false));
    s.arms.emplace_back(std::move(test), std::move(body));
    const std::string end = take().text;
    if (end == "elif") continue;
    if (end == "else") {
      DECANT_ASSIGN(s.else_body, parse_block_body({"endif"}, true));
    }
    return s;
  }
}

Result<Stmt> Parser::parse_set(Stmt s) {
  DECANT_ASSIGN(s.target, parse_target("", true));
  if (skip_op("=")) {
    s.kind = StmtKind::kSet;
    DECANT_ASSIGN(auto value, parse_tuple({}));
    s.exprs.push_back(std::move(value));
    return s;
  }
  s.kind = StmtKind::kSetBlock;
  const ScopeGuard scope(*this, false, 0);
  if (is_op("|")) {
    DECANT_ASSIGN(auto filter, parse_filter_chain(nullptr, false));
    s.exprs.push_back(std::move(filter));
  }
  DECANT_ASSIGN(s.body, parse_block_body({"endset"}, true));
  return s;
}

Result<Stmt> Parser::parse_with(Stmt s) {
  s.kind = StmtKind::kWith;
  while (!is(TokenKind::kBlockEnd) && !is(TokenKind::kEnd)) {
    if (!s.symbols.empty()) DECANT_RETURN_IF_ERROR(expect_op(","));
    DECANT_ASSIGN(const Symbol name, parse_target_name());
    s.symbols.push_back(name);
    DECANT_RETURN_IF_ERROR(expect_op("="));
    DECANT_ASSIGN(auto value, parse_expression());
    s.exprs.push_back(std::move(value));
  }
  const ScopeGuard scope(*this, false, loops_);
  DECANT_ASSIGN(s.body, parse_block_body({"endwith"}, true));
  return s;
}

Status Parser::parse_signature(Stmt& s) {
  DECANT_RETURN_IF_ERROR(expect_op("("));
  bool defaults = false;
  while (!is_op(")")) {
    if (!s.parameters.empty()) DECANT_RETURN_IF_ERROR(expect_op(","));
    Parameter p;
    DECANT_ASSIGN(p.symbol, parse_target_name(&p.name));
    if (skip_op("=")) {
      DECANT_ASSIGN(p.default_value, parse_expression());
      defaults = true;
    } else if (defaults) {
      return fail("non-default argument follows default argument");
    }
    s.parameters.push_back(std::move(p));
  }
  return expect_op(")");
}

Result<Stmt> Parser::parse_macro(Stmt s) {
  s.kind = StmtKind::kMacro;
  DECANT_ASSIGN(s.symbol, parse_target_name(&s.text));
  const ScopeGuard scope(*this, false, 0);
  macros_.emplace_back();
  DECANT_RETURN_IF_ERROR(parse_signature(s));
  DECANT_ASSIGN(s.body, parse_block_body({"endmacro"}, true));
  s.uses_caller = macros_.back().caller;
  s.uses_varargs = macros_.back().varargs;
  s.uses_kwargs = macros_.back().kwargs;
  macros_.pop_back();
  return s;
}

Result<Stmt> Parser::parse_call_block(Stmt s) {
  s.kind = StmtKind::kCallBlock;
  s.text = "caller";
  if (is_op("(")) DECANT_RETURN_IF_ERROR(parse_signature(s));
  DECANT_ASSIGN(auto call, parse_expression());
  if (call->kind != ExprKind::kCall) return fail_at("expected call", s.at);
  s.exprs.push_back(std::move(call));
  const ScopeGuard scope(*this, false, 0);
  macros_.emplace_back();
  DECANT_ASSIGN(s.body, parse_block_body({"endcall"}, true));
  s.uses_varargs = macros_.back().varargs;
  s.uses_kwargs = macros_.back().kwargs;
  macros_.pop_back();
  return s;
}

Result<Stmt> Parser::parse_filter_block(Stmt s) {
  s.kind = StmtKind::kFilterBlock;
  const ScopeGuard scope(*this, false, 0);
  DECANT_ASSIGN(auto filter, parse_filter_chain(nullptr, true));
  s.exprs.push_back(std::move(filter));
  DECANT_ASSIGN(s.body, parse_block_body({"endfilter"}, true));
  return s;
}

Result<Stmt> Parser::parse_named_block(Stmt s) {
  DECANT_ASSIGN(const Symbol name, parse_target_name(&s.text));
  skip_name("scoped");
  skip_name("required");
  const ScopeGuard scope(*this, false, 0);
  DECANT_ASSIGN(s.body, parse_block_body({"endblock"}, true));
  skip_name(program_.names[name]);
  return s;
}

Result<Stmt> Parser::parse_loader(Stmt s) {
  s.kind = StmtKind::kLoader;
  while (!is(TokenKind::kBlockEnd) && !is(TokenKind::kEnd)) take();
  return s;
}

Status Parser::parse_print(Body& out, Position at) {
  while (!is(TokenKind::kBlockEnd) && !is(TokenKind::kEnd)) {
    DECANT_ASSIGN(auto value, parse_expression());
    Stmt& output = out.emplace_back(Stmt{.kind = StmtKind::kOutput, .at = at});
    output.exprs.push_back(std::move(value));
    if (!is(TokenKind::kBlockEnd)) DECANT_RETURN_IF_ERROR(expect_op(","));
  }
  return ok_status();
}

Result<Program> parse_template(std::string_view source, Position& error_at) {
  DECANT_ASSIGN(auto tokens, tokenize(source, error_at));
  return Parser(std::move(tokens), error_at).run();
}

}  // namespace decant::text
