#include "app/text_files.h"

#include <filesystem>

#include "app/layouts/layouts.h"
#include "app/source.h"
#include "base/file_writer.h"
#include "formats/huggingface/config.h"
#include "formats/huggingface/tokenizer_config.h"

namespace decant::app {

struct TextFiles::Texts {
  std::string tokenizer_json;
  huggingface::TokenizerConfig tokenizer_config;
  huggingface::GenerationConfig generation_config;
  std::optional<huggingface::ModelConfig> config;
};

Result<TextFiles::Texts> TextFiles::read(const Layout& layout) {
  Texts texts;
  if (layout.kind == Layout::Kind::kGguf) {
    const std::string& path = layout.components.at(0).path;
    DECANT_ASSIGN(Source source, open_source(path));
    texts.tokenizer_json = std::move(source.tokenizer_json);
    if (!source.tokenizer_config_json.empty()) {  // a file without a tokenizer takes ids
      DECANT_ASSIGN(texts.tokenizer_config,
                    huggingface::TokenizerConfig::parse(source.tokenizer_config_json, path));
    }
    DECANT_ASSIGN(texts.generation_config,
                  huggingface::GenerationConfig::parse(source.generation_config_json, path));
    texts.config = source.config;
    return texts;
  }
  namespace fs = std::filesystem;
  // A repository's onnx/ folder has its tokenizer one level up.
  std::string folder = layout.folder;
  std::error_code error;
  if (!fs::exists(fs::path(folder) / "tokenizer.json", error) && fs::path(folder).filename() == "onnx") {
    folder = fs::path(folder).parent_path().string();
  }
  if (fs::exists(fs::path(folder) / "tokenizer.json", error)) {
    DECANT_ASSIGN(texts.tokenizer_json, read_file((fs::path(folder) / "tokenizer.json").string()));
  }
  DECANT_ASSIGN(texts.tokenizer_config, huggingface::TokenizerConfig::load(folder));
  DECANT_ASSIGN(texts.generation_config, huggingface::GenerationConfig::load(folder));
  if (fs::exists(fs::path(folder) / "config.json", error)) {
    DECANT_ASSIGN(texts.config, huggingface::ModelConfig::load(folder));
  }
  return texts;
}

Result<TextFiles> TextFiles::load(const Layout& layout) {
  TextFiles files;
  files.where_ = layout.folder.empty() ? layout.components.at(0).path : layout.folder;
  DECANT_ASSIGN(Texts texts, read(layout));
  if (!texts.tokenizer_json.empty()) {
    DECANT_ASSIGN(files.tokenizer_,
                  text::Tokenizer::from_json(texts.tokenizer_json, files.where_ + "/tokenizer.json"));
  }
  if (const std::string* chat = texts.tokenizer_config.chat_template()) {
    files.chat_template_ = *chat;
    files.chat_template_origin_ = files.where_ + " chat template";
  }
  const std::pair<const char*, const std::optional<std::string>*> specials[] = {
      {"bos_token", &texts.tokenizer_config.bos_token},
      {"eos_token", &texts.tokenizer_config.eos_token},
      {"unk_token", &texts.tokenizer_config.unk_token},
      {"pad_token", &texts.tokenizer_config.pad_token}};
  for (const auto& [name, token] : specials) {
    if (*token) files.special_tokens_.emplace_back(name, **token);
  }
  files.generation_ = texts.generation_config;
  if (layout.kind == Layout::Kind::kOnnx) {
    DECANT_ASSIGN(const layouts::GenaiText genai, layouts::genai_text(layout.folder));
    for (int64_t id : genai.eos_token_ids) files.stop_tokens_.add(static_cast<int32_t>(id), "genai_config");
    if (genai.context_length && *genai.context_length > 0) files.max_positions_ = genai.context_length;
  }
  for (int64_t id : texts.generation_config.eos_token_ids)
    files.stop_tokens_.add(static_cast<int32_t>(id), "generation_config");
  if (texts.config) {
    if (auto id = texts.config->get_int("eos_token_id"); id.ok())
      files.stop_tokens_.add(static_cast<int32_t>(*id), "config");
    if (auto ids = texts.config->get_ints("eos_token_id"); ids.ok()) {
      for (int64_t id : *ids) files.stop_tokens_.add(static_cast<int32_t>(id), "config");
    }
    if (auto n = texts.config->get_int("max_position_embeddings"); n.ok() && *n > 0)
      files.max_positions_ = *n;
  }
  if (files.tokenizer_ && texts.tokenizer_config.eos_token) {
    if (auto id = files.tokenizer_->token_to_id(*texts.tokenizer_config.eos_token))
      files.stop_tokens_.add(*id, "tokenizer");
  }
  return files;
}

Result<const text::Tokenizer*> TextFiles::tokenizer() const {
  if (!tokenizer_) return not_found(where_ + ": no tokenizer.json; give token ids instead of text");
  return &*tokenizer_;
}

Result<text::ChatTemplate> TextFiles::chat_template(text::TemplateError* error) const {
  if (!chat_template_) {
    return not_found(where_ +
                     ": no chat template (looked for chat_template.jinja and chat_template in "
                     "tokenizer_config.json); use a plain prompt");
  }
  return text::ChatTemplate::parse(*chat_template_, chat_template_origin_, error);
}

Result<text::Rendered> TextFiles::render_chat(const text::Value& variables,
                                              const text::RenderOptions& options,
                                              text::TemplateError* error) const {
  DECANT_ASSIGN(const text::ChatTemplate chat, chat_template(error));
  std::vector<std::pair<text::Value, text::Value>> entries;
  for (const auto& [name, token] : special_tokens_)
    entries.emplace_back(text::Value::string(name), text::Value::string(token));
  if (!variables.is_dict())
    return invalid_argument("the variables of a chat template are an object with \"messages\"");
  for (const auto& entry : variables.entries()) entries.push_back(entry);
  return chat.render_chat(text::Value::dict(std::move(entries)), options, error);
}

Result<text::Rendered> TextFiles::render_conversation(std::string_view json) const {
  DECANT_ASSIGN(text::Value parsed, text::parse_json(json));
  std::vector<std::pair<text::Value, text::Value>> variables;
  if (parsed.is_dict()) {
    variables = parsed.entries();
  } else {
    variables.emplace_back(text::Value::string("messages"), parsed);
  }
  if (!parsed.is_dict() || !parsed.find("add_generation_prompt")) {
    variables.emplace_back(text::Value::string("add_generation_prompt"), text::Value::boolean(true));
  }
  return render_chat(text::Value::dict(std::move(variables)), {});
}

Result<TextFiles> open_text_files(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  for (const char* file : {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja"}) {
    if (!fs::exists(fs::path(path) / file, error)) continue;
    Layout layout;
    layout.folder = path;
    return TextFiles::load(layout);
  }
  DECANT_ASSIGN(const Layout layout, find_layout(path));
  return TextFiles::load(layout);
}

Result<text::Tokenizer> open_tokenizer(const std::string& path) {
  if (std::filesystem::path(path).extension() == ".json") {
    DECANT_ASSIGN(const std::string json, read_file(path));
    return text::Tokenizer::from_json(json, path);
  }
  DECANT_ASSIGN(const TextFiles files, open_text_files(path));
  DECANT_ASSIGN(const text::Tokenizer* tokenizer, files.tokenizer());
  return *tokenizer;
}

}  // namespace decant::app
