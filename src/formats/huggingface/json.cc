#include "formats/huggingface/json.h"

#include <cmath>
#include <exception>
#include <limits>

#include "base/mapped_file.h"

namespace decant::huggingface {
namespace {

constexpr int kMaxDepth = 128;
constexpr size_t kMaxTextBytes = size_t{64} << 20;

/// Depth of brackets outside strings stays within the limit; whether they match is the parser's business.
bool too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
      continue;
    }
    if (c == '"')
      in_string = true;
    else if (c == '{' || c == '[') {
      if (++depth > kMaxDepth) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

}  // namespace

Result<nlohmann::json> parse_object(std::string_view text, const std::string& source) {
  if (text.size() > kMaxTextBytes) return invalid_model(source + " is larger than 64 MiB");
  if (too_deep(text))
    return invalid_model(source + " is nested deeper than " + std::to_string(kMaxDepth) + " levels");
  try {
    nlohmann::json root = nlohmann::json::parse(text.begin(), text.end());
    if (!root.is_object()) return invalid_model(source + " is " + describe(root) + ", not a JSON object");
    return root;
  } catch (const std::exception& e) {
    return invalid_model(source + " is not valid JSON: " + e.what());
  }
}

Result<std::string> read_beneath(const std::string& folder, const std::string& name) {
  DECANT_ASSIGN(const auto file, MappedFile::open_beneath(folder, name));
  const auto bytes = file->bytes();
  if (bytes.size() > kMaxTextBytes) return invalid_model(file->path() + " is larger than 64 MiB");
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

const nlohmann::json* find_value(const nlohmann::json& root, std::string_view path) {
  const nlohmann::json* value = &root;
  while (true) {
    if (!value->is_object()) return nullptr;
    const size_t dot = path.find('.');
    const auto found = value->find(std::string(path.substr(0, dot)));
    if (found == value->end() || found->is_null()) return nullptr;
    value = &*found;
    if (dot == std::string_view::npos) return value;
    path.remove_prefix(dot + 1);
  }
}

std::string describe(const nlohmann::json& value) {
  if (value.is_null()) return "null";
  if (value.is_boolean()) return value.get<bool>() ? "true" : "false";
  if (value.is_array()) return "a list";
  if (value.is_object()) return "an object";
  if (value.is_string()) return "a string";
  if (value.is_number()) return "the number " + value.dump();
  return "something else";
}

std::optional<int64_t> as_int(const nlohmann::json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<uint64_t>();
    if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
    return static_cast<int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number_float()) {
    const auto number = value.get<double>();
    if (std::trunc(number) == number && std::fabs(number) <= 0x1p53) return static_cast<int64_t>(number);
  }
  return std::nullopt;
}

std::optional<double> as_double(const nlohmann::json& value) {
  if (!value.is_number()) return std::nullopt;
  const auto number = value.get<double>();
  if (!std::isfinite(number)) return std::nullopt;
  return number;
}

std::optional<bool> as_bool(const nlohmann::json& value) {
  if (!value.is_boolean()) return std::nullopt;
  return value.get<bool>();
}

std::optional<std::string> as_string(const nlohmann::json& value) {
  if (!value.is_string()) return std::nullopt;
  return value.get<std::string>();
}

}  // namespace decant::huggingface
