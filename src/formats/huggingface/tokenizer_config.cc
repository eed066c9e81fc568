#include "formats/huggingface/tokenizer_config.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "formats/huggingface/json.h"

namespace decant::huggingface {
namespace {

using Templates = std::vector<std::pair<std::string, std::string>>;

constexpr size_t kMaxTemplates = 64;

/// A token as text, or as an object with "content".
std::optional<std::string> as_token(const nlohmann::json& value) {
  if (value.is_object()) {
    const nlohmann::json* content = find_value(value, "content");
    return content == nullptr ? std::nullopt : as_string(*content);
  }
  return as_string(value);
}

/// One template, or a list of {"name", "template"}, or an object from names to templates.
std::optional<Templates> as_templates(const nlohmann::json& value) {
  if (value.is_string()) return Templates{{"default", value.get<std::string>()}};
  Templates templates;
  if (value.is_object()) {
    for (const auto& item : value.items()) {
      if (!item.value().is_string()) return std::nullopt;
      templates.emplace_back(item.key(), item.value().get<std::string>());
    }
    return templates;
  }
  if (!value.is_array()) return std::nullopt;
  for (const nlohmann::json& item : value) {
    const nlohmann::json* name = find_value(item, "name");
    const nlohmann::json* text = find_value(item, "template");
    if (name == nullptr || text == nullptr || !name->is_string() || !text->is_string()) return std::nullopt;
    templates.emplace_back(name->get<std::string>(), text->get<std::string>());
  }
  return templates;
}

Status read_tokens(const nlohmann::json& root, TokenizerConfig& config, const std::string& source) {
  const std::pair<const char*, std::optional<std::string>*> tokens[] = {{"bos_token", &config.bos_token},
                                                                        {"eos_token", &config.eos_token},
                                                                        {"unk_token", &config.unk_token},
                                                                        {"pad_token", &config.pad_token}};
  for (const auto& [key, target] : tokens) {
    if (target->has_value()) continue;
    DECANT_RETURN_IF_ERROR(
        read_optional(root, key, *target, as_token, "a string or an object with \"content\"", source));
  }
  return ok_status();
}

std::string path_of(const std::string& folder, const std::string& name) {
  return folder + (folder.empty() || folder.ends_with('/') ? "" : "/") + name;
}

/// The template files of a folder: chat_template.jinja and additional_chat_templates/NAME.jinja.
Result<Templates> read_template_files(const std::string& folder) {
  Templates templates;
  auto text = read_beneath(folder, "chat_template.jinja");
  if (text.ok())
    templates.emplace_back("default", *std::move(text));
  else if (text.status().code() != StatusCode::kNotFound)
    return std::move(text).status();

  constexpr std::string_view kSuffix = ".jinja";
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(path_of(folder, "additional_chat_templates"), error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (name.size() > kSuffix.size() && name.ends_with(kSuffix)) names.push_back(std::move(name));
    if (names.size() > kMaxTemplates) return invalid_model(folder + " holds more than 64 chat templates");
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    DECANT_ASSIGN(std::string source, read_beneath(folder, "additional_chat_templates/" + name));
    templates.emplace_back(name.substr(0, name.size() - kSuffix.size()), std::move(source));
  }
  return templates;
}

}  // namespace

const std::string* TokenizerConfig::chat_template(const std::string& name) const {
  for (const auto& [key, text] : chat_templates) {
    if (key == name) return &text;
  }
  return nullptr;
}

Result<TokenizerConfig> TokenizerConfig::parse(std::string json, const std::string& source) {
  DECANT_ASSIGN(const nlohmann::json root, parse_object(json, source));
  TokenizerConfig config;
  DECANT_RETURN_IF_ERROR(read_optional(root, "chat_template", config.chat_templates, as_templates,
                                       "a template or a list of {\"name\", \"template\"}", source));
  DECANT_RETURN_IF_ERROR(read_tokens(root, config, source));
  DECANT_RETURN_IF_ERROR(
      read_optional(root, "add_bos_token", config.add_bos_token, as_bool, "true or false", source));
  DECANT_RETURN_IF_ERROR(
      read_optional(root, "add_eos_token", config.add_eos_token, as_bool, "true or false", source));
  DECANT_RETURN_IF_ERROR(read_optional(root, "clean_up_tokenization_spaces",
                                       config.clean_up_tokenization_spaces, as_bool, "true or false",
                                       source));
  DECANT_RETURN_IF_ERROR(
      read_optional(root, "tokenizer_class", config.tokenizer_class, as_string, "a string", source));
  std::optional<double> length;
  DECANT_RETURN_IF_ERROR(read_optional(root, "model_max_length", length, as_double, "a number", source));
  // "No limit" is written as int(1e30).
  if (length && *length >= 0 && *length < 0x1p53) config.model_max_length = static_cast<int64_t>(*length);
  config.json = std::move(json);
  return config;
}

Result<TokenizerConfig> TokenizerConfig::load(const std::string& folder) {
  TokenizerConfig config;
  auto text = read_beneath(folder, "tokenizer_config.json");
  if (text.ok()) {
    DECANT_ASSIGN(config, parse(*std::move(text), path_of(folder, "tokenizer_config.json")));
  } else if (text.status().code() != StatusCode::kNotFound) {
    return std::move(text).status();
  }
  auto tokens = read_beneath(folder, "special_tokens_map.json");
  if (tokens.ok()) {
    const std::string source = path_of(folder, "special_tokens_map.json");
    DECANT_ASSIGN(const nlohmann::json root, parse_object(*tokens, source));
    DECANT_RETURN_IF_ERROR(read_tokens(root, config, source));
  } else if (tokens.status().code() != StatusCode::kNotFound) {
    return std::move(tokens).status();
  }
  DECANT_ASSIGN(Templates files, read_template_files(folder));
  if (!files.empty()) config.chat_templates = std::move(files);
  return config;
}

}  // namespace decant::huggingface
