#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace decant::text {

/// A place in a template: both 1-based, the column in code points. Line 0: no place known.
struct Position {
  uint32_t line = 0;
  uint32_t column = 0;
};

/// What went wrong in a template, for callers that report the parts separately.
/// `kind` is the class name the reference implementation would raise: "TemplateSyntaxError",
/// "UndefinedError", "TypeError", "TemplateError" (raise_exception), "SecurityError", "LimitError" (one of
/// RenderLimits), ...
struct TemplateError {
  std::string kind;
  std::string message;
  Position at;
};

/// Statuses inside the template engine read "Kind: message"; to_template_error takes them apart again.
Status raise(std::string_view kind, std::string_view message);
inline Status syntax_error(std::string_view m) { return raise("TemplateSyntaxError", m); }
inline Status type_error(std::string_view m) { return raise("TypeError", m); }
inline Status value_error(std::string_view m) { return raise("ValueError", m); }
inline Status undefined_error(std::string_view m) { return raise("UndefinedError", m); }
inline Status security_error(std::string_view m) { return raise("SecurityError", m); }
inline Status runtime_error(std::string_view m) { return raise("TemplateRuntimeError", m); }
inline Status limit_error(std::string_view m) { return raise("LimitError", m); }

TemplateError to_template_error(const Status& status, Position at);

/// "ORIGIN:LINE:COLUMN: Kind: message", as a Status of the same code.
Status with_position(const Status& status, std::string_view origin, Position at);

}  // namespace decant::text
