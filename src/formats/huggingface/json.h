#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace decant::huggingface {

/// Parses the text of an object. Errors name `source` and the byte. Nesting is limited to 128 levels, numbers
/// to double.
Result<nlohmann::json> parse_object(std::string_view text, const std::string& source);

/// Reads a text file inside a model folder (see MappedFile::open_beneath); kNotFound when it does not exist.
Result<std::string> read_beneath(const std::string& folder, const std::string& name);

/// The value at a dotted path; null when absent or JSON null.
const nlohmann::json* find_value(const nlohmann::json& root, std::string_view path);

/// "true", "a list", ...: what a value is, for messages.
std::string describe(const nlohmann::json& value);

/// Conversions; nullopt when the value is something else. 8192.0 is an integer, 3 is a double, true is
/// neither.
std::optional<int64_t> as_int(const nlohmann::json& value);
std::optional<double> as_double(const nlohmann::json& value);
std::optional<bool> as_bool(const nlohmann::json& value);
std::optional<std::string> as_string(const nlohmann::json& value);

/// Reads root[key] through `convert` into `target`, which stays as it is when the key is absent or null.
template <typename Target, typename Convert>
Status read_optional(const nlohmann::json& root, std::string_view key, Target& target, Convert convert,
                     std::string_view wanted, const std::string& source) {
  const nlohmann::json* value = find_value(root, key);
  if (value == nullptr) return ok_status();
  auto converted = convert(*value);
  if (!converted) {
    return invalid_model(source + ": \"" + std::string(key) + "\" is " + describe(*value) + ", " +
                         std::string(wanted) + " was expected");
  }
  target = *std::move(converted);
  return ok_status();
}

}  // namespace decant::huggingface
