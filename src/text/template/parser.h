#pragma once

#include <string_view>

#include "base/status.h"
#include "text/template/ast.h"

namespace decant::text {

/// Parses a template in Jinja's language: its statements and expressions, the loop controls `break` and
/// `continue`, and the `generation` tag. Tags, filters and tests that do not exist are errors here, except
/// filters and tests inside an `if`, which Jinja only looks up when they are reached. On failure `error_at`
/// is where.
Result<Program> parse_template(std::string_view source, Position& error_at);

}  // namespace decant::text
