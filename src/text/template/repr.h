#pragma once

#include <string>

#include "base/status.h"
#include "text/template/value.h"

namespace decant::text {

/// Python's repr(float): the shortest digits that read back the same, "1e-07", "inf", "nan".
std::string repr_double(double d);

/// Python's repr of a text: quotes, escapes, what cannot be printed as \x, \u or \U.
void append_repr_string(std::string& out, std::string_view text);

/// Appends str(v) or repr(v). LimitError when `out` passes `limit` bytes.
Status append_text(std::string& out, const Value& v, size_t limit);
Status append_repr(std::string& out, const Value& v, size_t limit);
Result<std::string> to_text(const Value& v, size_t limit);

/// A text with & < > ' " as HTML entities.
std::string escape_html(std::string_view text);

}  // namespace decant::text
