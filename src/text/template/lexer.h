#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/template/errors.h"

namespace decant::text {

enum class TokenKind : uint8_t {
  kText,
  kBlockBegin,
  kBlockEnd,
  kPrintBegin,
  kPrintEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenKind kind;
  std::string text;  ///< names, operators, digits without '_'; strings unescaped
  Position at;
};

/// Splits a template into tokens, with trim_blocks and lstrip_blocks on: the line break after a block or
/// comment tag goes, and so do the blanks before one that starts its line; '-' strips all white space on its
/// side, '+' keeps it. Line breaks are normalised to \n and one at the very end is dropped. The last token is
/// kEnd. On failure `error_at` is where.
Result<std::vector<Token>> tokenize(std::string_view source, Position& error_at);

/// How a token is named in messages.
std::string describe(const Token& token);

}  // namespace decant::text
