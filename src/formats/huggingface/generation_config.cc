#include "formats/huggingface/generation_config.h"

#include <utility>

#include "formats/huggingface/json.h"

namespace decant::huggingface {
namespace {

std::optional<std::vector<int64_t>> as_ids(const nlohmann::json& value) {
  std::vector<int64_t> ids;
  if (!value.is_array()) {
    const auto id = as_int(value);
    if (!id) return std::nullopt;
    ids.push_back(*id);
    return ids;
  }
  for (const nlohmann::json& item : value) {
    const auto id = as_int(item);
    if (!id) return std::nullopt;
    ids.push_back(*id);
  }
  return ids;
}

Status read_ids(const nlohmann::json& root, GenerationConfig& config, const std::string& source) {
  DECANT_RETURN_IF_ERROR(read_optional(root, "eos_token_id", config.eos_token_ids, as_ids,
                                       "a token id or a list of them", source));
  DECANT_RETURN_IF_ERROR(
      read_optional(root, "bos_token_id", config.bos_token_id, as_int, "a token id", source));
  return read_optional(root, "pad_token_id", config.pad_token_id, as_int, "a token id", source);
}

std::string path_of(const std::string& folder, const char* name) {
  return folder + (folder.empty() || folder.ends_with('/') ? "" : "/") + name;
}

}  // namespace

Result<GenerationConfig> GenerationConfig::parse(std::string json, const std::string& source) {
  DECANT_ASSIGN(const nlohmann::json root, parse_object(json, source));
  GenerationConfig config;
  const auto number = [&](std::string_view key, std::optional<double>& target) {
    return read_optional(root, key, target, as_double, "a number", source);
  };
  const auto integer = [&](std::string_view key, std::optional<int64_t>& target) {
    return read_optional(root, key, target, as_int, "an integer", source);
  };
  DECANT_RETURN_IF_ERROR(read_ids(root, config, source));
  DECANT_RETURN_IF_ERROR(
      read_optional(root, "do_sample", config.do_sample, as_bool, "true or false", source));
  DECANT_RETURN_IF_ERROR(number("temperature", config.temperature));
  DECANT_RETURN_IF_ERROR(integer("top_k", config.top_k));
  DECANT_RETURN_IF_ERROR(number("top_p", config.top_p));
  DECANT_RETURN_IF_ERROR(number("min_p", config.min_p));
  DECANT_RETURN_IF_ERROR(number("repetition_penalty", config.repetition_penalty));
  DECANT_RETURN_IF_ERROR(integer("max_length", config.max_length));
  DECANT_RETURN_IF_ERROR(integer("max_new_tokens", config.max_new_tokens));
  config.json = std::move(json);
  return config;
}

Result<GenerationConfig> GenerationConfig::load(const std::string& folder) {
  auto text = read_beneath(folder, "generation_config.json");
  if (text.ok()) return parse(*std::move(text), path_of(folder, "generation_config.json"));
  if (text.status().code() != StatusCode::kNotFound) return std::move(text).status();
  GenerationConfig config;
  auto model = read_beneath(folder, "config.json");
  if (!model.ok()) {
    if (model.status().code() != StatusCode::kNotFound) return std::move(model).status();
    return config;
  }
  const std::string source = path_of(folder, "config.json");
  DECANT_ASSIGN(const nlohmann::json root, parse_object(*model, source));
  DECANT_RETURN_IF_ERROR(read_ids(root, config, source));
  return config;
}

}  // namespace decant::huggingface
