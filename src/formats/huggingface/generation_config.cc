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

/// [[1, 50259], [2, null]]: positions and the ids forced there.
std::optional<std::vector<std::pair<int64_t, int64_t>>> as_forced(const nlohmann::json& value) {
  std::vector<std::pair<int64_t, int64_t>> forced;
  if (!value.is_array()) return std::nullopt;
  for (const nlohmann::json& entry : value) {
    if (!entry.is_array() || entry.size() != 2) return std::nullopt;
    const auto position = as_int(entry[0]);
    if (!position) return std::nullopt;
    if (entry[1].is_null()) continue;
    const auto id = as_int(entry[1]);
    if (!id) return std::nullopt;
    forced.emplace_back(*position, *id);
  }
  return forced;
}

Status read_start(const nlohmann::json& root, GenerationConfig& config, const std::string& source) {
  std::vector<int64_t> start;
  DECANT_RETURN_IF_ERROR(
      read_optional(root, "decoder_start_token_id", start, as_ids, "a token id or a list of them", source));
  if (!start.empty() && !config.decoder_start_token_id) config.decoder_start_token_id = start[0];
  std::optional<int64_t> forced;
  DECANT_RETURN_IF_ERROR(read_optional(root, "forced_bos_token_id", forced, as_int, "a token id", source));
  if (!config.forced_bos_token_id) config.forced_bos_token_id = forced;
  return ok_status();
}

Status read_rules(const nlohmann::json& root, GenerationConfig& config, const std::string& source) {
  DECANT_RETURN_IF_ERROR(read_start(root, config, source));
  DECANT_RETURN_IF_ERROR(read_optional(root, "forced_decoder_ids", config.forced_decoder_ids, as_forced,
                                       "a list of pairs of a position and a token id", source));
  DECANT_RETURN_IF_ERROR(read_optional(root, "suppress_tokens", config.suppress_tokens, as_ids,
                                       "a token id or a list of them", source));
  return read_optional(root, "begin_suppress_tokens", config.begin_suppress_tokens, as_ids,
                       "a token id or a list of them", source);
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
  DECANT_RETURN_IF_ERROR(read_rules(root, config, source));
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
  GenerationConfig config;
  auto text = read_beneath(folder, "generation_config.json");
  const bool found = text.ok();
  if (found) {
    DECANT_ASSIGN(config, parse(*std::move(text), path_of(folder, "generation_config.json")));
  } else if (text.status().code() != StatusCode::kNotFound) {
    return std::move(text).status();
  }
  auto model = read_beneath(folder, "config.json");
  if (!model.ok()) {
    if (model.status().code() != StatusCode::kNotFound) return std::move(model).status();
    return config;
  }
  const std::string source = path_of(folder, "config.json");
  DECANT_ASSIGN(const nlohmann::json root, parse_object(*model, source));
  if (found) {
    DECANT_RETURN_IF_ERROR(read_start(root, config, source));
    return config;
  }
  DECANT_RETURN_IF_ERROR(read_ids(root, config, source));
  DECANT_RETURN_IF_ERROR(read_rules(root, config, source));
  return config;
}

}  // namespace decant::huggingface
