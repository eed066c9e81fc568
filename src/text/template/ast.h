#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/template/errors.h"
#include "text/template/value.h"

namespace decant::text {

/// Number of a variable name within one template; names are compared by it while rendering.
using Symbol = uint32_t;

enum class ExprKind : uint8_t {
  kConst,
  kName,
  kList,
  kTuple,
  kDict,       ///< items: key, value, key, value ...
  kAttribute,  ///< items[0].name
  kSubscript,  ///< items[0][items[1]]
  kSlice,      ///< items: start, stop, step; null where left out
  kCall,       ///< items[0](arguments)
  kFilter,     ///< items[0] | name(arguments); items[0] is null inside filter and set blocks
  kTest,       ///< items[0] is name(arguments)
  kUnary,
  kBinary,
  kAnd,
  kOr,
  kCompare,          ///< items[0] ops[0] items[1] ops[1] items[2] ...
  kConcat,           ///< items joined by ~
  kConditional,      ///< items[0] if items[1] else items[2]; items[2] is null where left out
  kNamespaceTarget,  ///< symbol.name on the left of a set
};

enum class Op : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kFloorDiv,
  kMod,
  kPow,
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kIn,
  kNotIn,
  kNeg,
  kPos,
  kNot,
};

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct Arguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr more_positional;  ///< *expr
  ExprPtr more_named;       ///< **expr
};

struct Expr {
  ExprKind kind;
  Op op = Op::kAdd;
  Position at;
  Symbol symbol = 0;
  uint32_t height = 1;
  std::string name;
  Value constant;
  std::vector<ExprPtr> items;
  std::vector<Op> ops;
  std::unique_ptr<Arguments> arguments;
};

enum class StmtKind : uint8_t {
  kText,
  kOutput,       ///< exprs[0] is printed
  kFor,          ///< target, exprs[0] iterable, condition; body, else_body
  kIf,           ///< arms[i] = (test, body); else_body
  kSet,          ///< target = exprs[0]
  kSetBlock,     ///< target = body, through exprs[0] when there is a filter
  kMacro,        ///< name, symbol, parameters, body
  kCallBlock,    ///< exprs[0] is a call; parameters and body make the caller
  kFilterBlock,  ///< body through exprs[0]
  kWith,         ///< targets[i] = exprs[i]; body
  kGeneration,   ///< body, whose place in the output is recorded
  kScope,        ///< body, in a scope of its own (block, autoescape)
  kBreak,
  kContinue,
  kLoader,  ///< include, import, extends: needs a loader, which chat templates lack
};

struct Stmt;
using Body = std::vector<Stmt>;

struct Parameter {
  Symbol symbol;
  std::string name;
  ExprPtr default_value;
};

struct Stmt {
  StmtKind kind;
  Position at;
  std::string text{};
  Symbol symbol = 0;
  bool recursive = false;
  bool uses_caller = false, uses_varargs = false, uses_kwargs = false;
  ExprPtr target{};
  ExprPtr condition{};
  std::vector<ExprPtr> exprs{};
  std::vector<Symbol> symbols{};
  std::vector<Parameter> parameters{};
  std::vector<std::pair<ExprPtr, Body>> arms{};
  Body body{};
  Body else_body{};
};

/// A parsed template: its statements and the names its symbols stand for.
struct Program {
  Body body;
  std::vector<std::string> names;
  // Symbols the engine itself binds.
  Symbol loop = 0, caller = 0, varargs = 0, kwargs = 0;
};

}  // namespace decant::text
