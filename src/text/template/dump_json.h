#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "text/template/value.h"

namespace decant::text {

struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  std::optional<std::string> indent;  ///< of one level; set, even empty: one item a line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

/// Python's json.dumps: no HTML escaping, floats as repr, NaN and Infinity by name. TypeError for what JSON
/// has not.
Result<std::string> dump_json(const Value& v, const JsonStyle& style, size_t limit);

/// The style that json.dumps(indent=..., separators=...) means; none for an argument left out.
Result<JsonStyle> json_style(const Value& ensure_ascii, const Value& indent, const Value& separators,
                             const Value& sort_keys);

}  // namespace decant::text
