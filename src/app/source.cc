#include "app/source.h"

#include <filesystem>

#include <nlohmann/json.hpp>

#include "app/gguf_source.h"
#include "app/gguf_tokenizer.h"
#include "app/weight_sources.h"
#include "base/file_writer.h"
#include "formats/gguf/gguf_file.h"
#include "formats/huggingface/generation_config.h"
#include "formats/huggingface/tokenizer_config.h"
#include "formats/safetensors/safetensors_file.h"
#include "text/tokenizer/gguf_vocabulary.h"

namespace decant::app {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr uint64_t kMaxTextBytes = uint64_t{256} << 20;

std::string dump(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

Result<std::string> read_if_there(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return std::string();
  return read_file(path.string(), kMaxTextBytes);
}

/// The folder's tokenizer_config.json, with the template that may stand in a file of its own.
Result<std::string> tokenizer_config_of(const std::string& folder) {
  DECANT_ASSIGN(const huggingface::TokenizerConfig config, huggingface::TokenizerConfig::load(folder));
  Json json =
      config.json.empty() ? Json::object() : Json::parse(config.json, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return invalid_model(folder + "/tokenizer_config.json: not a JSON object");
  if (config.chat_templates.size() == 1 && config.chat_templates[0].first == "default") {
    json["chat_template"] = config.chat_templates[0].second;
  } else if (!config.chat_templates.empty()) {
    json["chat_template"] = Json::array();
    for (const auto& [name, text] : config.chat_templates) {
      json["chat_template"].push_back(Json{{"name", name}, {"template", text}});
    }
  }
  auto token = [&](const char* key, const std::optional<std::string>& text) {
    if (text && !json.contains(key)) json[key] = *text;
  };
  token("bos_token", config.bos_token);
  token("eos_token", config.eos_token);
  token("unk_token", config.unk_token);
  token("pad_token", config.pad_token);
  return json.empty() ? std::string() : dump(json);
}

Result<std::string> generation_config_of(const std::string& folder) {
  DECANT_ASSIGN(const huggingface::GenerationConfig config, huggingface::GenerationConfig::load(folder));
  if (!config.json.empty()) return config.json;
  Json json = Json::object();
  if (config.bos_token_id) json["bos_token_id"] = *config.bos_token_id;
  if (config.eos_token_ids.size() == 1) json["eos_token_id"] = config.eos_token_ids[0];
  if (config.eos_token_ids.size() > 1) json["eos_token_id"] = config.eos_token_ids;
  if (config.pad_token_id) json["pad_token_id"] = *config.pad_token_id;
  return dump(json);
}

Result<Source> open_gguf(const std::string& path) {
  DECANT_ASSIGN(const std::shared_ptr<const gguf::GgufFile> file, gguf::GgufFile::open(path));
  DECANT_ASSIGN(std::string config_json, hf_config_from_gguf(*file));
  DECANT_ASSIGN(huggingface::ModelConfig config,
                huggingface::ModelConfig::parse(std::move(config_json), path));
  DECANT_ASSIGN(std::unique_ptr<models::WeightSource> weights, gguf_weights(file));
  Source source{.path = path, .config = std::move(config), .weights = std::move(weights)};
  DECANT_ASSIGN(source.generation_config_json, hf_generation_config_from_gguf(*file));
  if (file->has("tokenizer.ggml.model")) {
    DECANT_ASSIGN(const text::GgufVocabulary vocabulary, gguf_vocabulary(*file));
    DECANT_ASSIGN(source.tokenizer_json, text::gguf_to_tokenizer_json(vocabulary, path));
    DECANT_ASSIGN(source.tokenizer_config_json, tokenizer_config_from_gguf(*file, vocabulary));
  }
  return source;
}

Result<Source> open_folder(const std::string& folder) {
  DECANT_ASSIGN(huggingface::ModelConfig config, huggingface::ModelConfig::load(folder));
  DECANT_ASSIGN(std::shared_ptr<const safetensors::SafetensorsFile> file,
                safetensors::SafetensorsFile::open(folder));
  Source source{.path = folder, .config = std::move(config), .weights = safetensors_weights(std::move(file))};
  DECANT_ASSIGN(source.generation_config_json, generation_config_of(folder));
  DECANT_ASSIGN(source.tokenizer_json, read_if_there(fs::path(folder) / "tokenizer.json"));
  DECANT_ASSIGN(source.tokenizer_config_json, tokenizer_config_of(folder));
  return source;
}

}  // namespace

Result<Source> open_source(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return open_folder(path);
  if (!fs::exists(path, error)) return not_found(path + ": no such file or folder");
  if (fs::path(path).extension() == ".gguf") return open_gguf(path);
  return unsupported(path + ": a source is a .gguf file, or a folder with config.json and safetensors");
}

}  // namespace decant::app
