#include <algorithm>
#include <array>

#include "formats/huggingface/config.h"
#include "formats/huggingface/config_impl.h"
#include "formats/huggingface/json.h"

namespace decant::huggingface {
namespace {

constexpr std::array kTypes = {"default", "linear", "dynamic", "llama3", "yarn", "longrope"};

std::optional<std::vector<double>> as_doubles(const nlohmann::json& value) {
  if (!value.is_array()) return std::nullopt;
  std::vector<double> numbers;
  for (const nlohmann::json& item : value) {
    const auto number = as_double(item);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

/// Names of the entries when the settings are kept per layer type, else empty.
std::vector<std::string> layer_types_of(const nlohmann::json& settings) {
  std::vector<std::string> names;
  for (const auto& item : settings.items()) {
    if (item.value().is_object()) names.push_back(item.key());
  }
  return names;
}

std::string join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// Fills `rope` from `settings`, whose values are checked for their type only.
Status read_fields(const nlohmann::json& settings, RopeParameters& rope, const std::string& source) {
  const auto number = [&](std::string_view key, auto& target) {
    return read_optional(settings, key, target, as_double, "a number", source);
  };
  DECANT_RETURN_IF_ERROR(read_optional(settings, "type", rope.type, as_string, "a string", source));
  DECANT_RETURN_IF_ERROR(read_optional(settings, "rope_type", rope.type, as_string, "a string", source));
  DECANT_RETURN_IF_ERROR(number("rope_theta", rope.theta));
  DECANT_RETURN_IF_ERROR(number("factor", rope.factor));
  DECANT_RETURN_IF_ERROR(number("partial_rotary_factor", rope.partial_rotary_factor));
  DECANT_RETURN_IF_ERROR(number("low_freq_factor", rope.low_freq_factor));
  DECANT_RETURN_IF_ERROR(number("high_freq_factor", rope.high_freq_factor));
  DECANT_RETURN_IF_ERROR(number("beta_fast", rope.beta_fast));
  DECANT_RETURN_IF_ERROR(number("beta_slow", rope.beta_slow));
  DECANT_RETURN_IF_ERROR(number("mscale", rope.mscale));
  DECANT_RETURN_IF_ERROR(number("mscale_all_dim", rope.mscale_all_dim));
  DECANT_RETURN_IF_ERROR(number("attention_factor", rope.attention_factor));
  DECANT_RETURN_IF_ERROR(
      read_optional(settings, "truncate", rope.truncate, as_bool, "true or false", source));
  DECANT_RETURN_IF_ERROR(
      read_optional(settings, "short_factor", rope.short_factor, as_doubles, "a list of numbers", source));
  DECANT_RETURN_IF_ERROR(
      read_optional(settings, "long_factor", rope.long_factor, as_doubles, "a list of numbers", source));
  return read_optional(settings, "original_max_position_embeddings", rope.original_max_position_embeddings,
                       as_int, "an integer", source);
}

Status check(const nlohmann::json& settings, const RopeParameters& rope, const std::string& source) {
  if (std::find(kTypes.begin(), kTypes.end(), rope.type) == kTypes.end()) {
    std::string known;
    for (const char* type : kTypes) known += (known.empty() ? "" : ", ") + std::string(type);
    return unsupported(source + ": rope type \"" + rope.type + "\" is unknown; known are " + known);
  }
  const auto need = [&](std::string_view key) -> Status {
    if (find_value(settings, key) != nullptr) return ok_status();
    return invalid_model(source + ": rope type \"" + rope.type + "\" needs \"" + std::string(key) + "\"");
  };
  if (rope.type == "linear" || rope.type == "dynamic" || rope.type == "yarn" || rope.type == "llama3") {
    DECANT_RETURN_IF_ERROR(need("factor"));
  }
  if (rope.type == "llama3") {
    DECANT_RETURN_IF_ERROR(need("low_freq_factor"));
    DECANT_RETURN_IF_ERROR(need("high_freq_factor"));
    if (rope.low_freq_factor <= 0 || rope.high_freq_factor <= rope.low_freq_factor) {
      return invalid_model(source + ": llama3 rope needs 0 < low_freq_factor < high_freq_factor");
    }
  }
  if (rope.type == "longrope") {
    DECANT_RETURN_IF_ERROR(need("short_factor"));
    DECANT_RETURN_IF_ERROR(need("long_factor"));
  }
  if (rope.theta <= 0) return invalid_model(source + ": rope_theta is not above 0");
  if (rope.factor <= 0) return invalid_model(source + ": the rope factor is not above 0");
  if (rope.beta_fast <= 0 || rope.beta_slow <= 0)
    return invalid_model(source + ": a rope beta is not above 0");
  if (rope.partial_rotary_factor <= 0 || rope.partial_rotary_factor > 1) {
    return invalid_model(source + ": partial_rotary_factor is not in (0, 1]");
  }
  if (rope.original_max_position_embeddings.value_or(1) <= 0) {
    return invalid_model(source + ": original_max_position_embeddings is not above 0");
  }
  return ok_status();
}

}  // namespace

Result<RopeParameters> ModelConfig::rope(std::string_view layer_type) const {
  const std::string& source = impl_->source;
  RopeParameters rope;
  DECANT_ASSIGN(rope.theta, get_double("rope_theta", rope.theta));
  DECANT_ASSIGN(rope.partial_rotary_factor, get_double("rotary_pct", rope.partial_rotary_factor));
  DECANT_ASSIGN(rope.partial_rotary_factor, get_double("partial_rotary_factor", rope.partial_rotary_factor));

  // As Transformers: a rope_scaling that says something goes before rope_parameters.
  const nlohmann::json empty = nlohmann::json::object();
  const nlohmann::json* settings = &empty;
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const nlohmann::json* value = impl_->find(key);
    if (value == nullptr) continue;
    if (!value->is_object()) return impl_->wrong(key, *value, "an object");
    if (value->empty()) continue;
    settings = value;
    break;
  }
  if (const auto types = layer_types_of(*settings); !types.empty()) {
    const auto found = settings->find(std::string(layer_type));
    if (found == settings->end() || !found->is_object()) {
      return not_found(source + ": the rope settings are per layer type (" + join(types) + "), not for \"" +
                       std::string(layer_type) + "\"");
    }
    settings = &*found;
  }
  DECANT_RETURN_IF_ERROR(read_fields(*settings, rope, source));
  if (rope.type == "su") rope.type = "longrope";  // its first name
  if (rope.type == "llama3" || rope.type == "yarn" || rope.type == "longrope") {
    // Phi-3 keeps the trained length at the top level, where it goes before the nested one.
    DECANT_RETURN_IF_ERROR(read_optional(impl_->root, "original_max_position_embeddings",
                                         rope.original_max_position_embeddings, as_int, "an integer",
                                         source));
  }
  DECANT_RETURN_IF_ERROR(check(*settings, rope, source));
  return rope;
}

}  // namespace decant::huggingface
