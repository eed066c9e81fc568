#include "app/load_tokenizer.h"

#include <filesystem>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/gguf_tokenizer.h"
#include "base/file_writer.h"
#include "base/mapped_file.h"
#include "formats/gguf/gguf_file.h"
#include "text/tokenizer/gguf_vocabulary.h"
#include "text/tokenizer/tokenizer.h"

namespace decant::app {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

/// tokenizer_config.json spells a token as a string or as an object with its content.
std::optional<int32_t> named_token(const nlohmann::json& config, const char* key, const text::Tokenizer& tokenizer) {
  const auto found = config.find(key);
  if (found == config.end()) return std::nullopt;
  const nlohmann::json* value = &*found;
  if (value->is_object() && value->contains("content")) value = &(*value)["content"];
  return value->is_string() ? tokenizer.token_to_id(value->get_ref<const std::string&>()) : std::nullopt;
}

Status add_roles(const fs::path& config_path, text::Tokenizer& tokenizer) {
  if (!is_file(config_path)) return ok_status();
  DECANT_ASSIGN(const std::string text, read_file(config_path.string(), uint64_t{64} << 20));
  const auto config = nlohmann::json::parse(text, nullptr, false);
  if (!config.is_object()) return invalid_model(config_path.string() + ": not a JSON object");
  text::SpecialTokenIds ids = tokenizer.special_ids();
  if (const auto id = named_token(config, "bos_token", tokenizer)) ids.bos = id;
  if (const auto id = named_token(config, "eos_token", tokenizer)) ids.eos = id;
  if (const auto id = named_token(config, "pad_token", tokenizer)) ids.pad = id;
  if (const auto id = named_token(config, "unk_token", tokenizer)) ids.unk = id;
  tokenizer.set_special_ids(ids);
  return ok_status();
}

Result<text::Tokenizer> from_json_file(const fs::path& path) {
  DECANT_ASSIGN(const auto file, MappedFile::open(path.string()));
  const auto bytes = file->bytes();
  const std::string_view json(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  DECANT_ASSIGN(text::Tokenizer tokenizer, text::Tokenizer::from_json(json, path.string()));
  file->release(bytes);
  DECANT_RETURN_IF_ERROR(add_roles(path.parent_path() / "tokenizer_config.json", tokenizer));
  return tokenizer;
}

}  // namespace

Result<text::Tokenizer> load_tokenizer(const std::string& model) {
  const fs::path path(model);
  std::error_code error;
  if (!fs::exists(path, error)) return not_found(model + ": no such file or folder");
  if (is_file(path) && path.extension() == ".json") return from_json_file(path);
  if (is_file(path) && path.extension() == ".gguf") {
    DECANT_ASSIGN(const auto file, gguf::GgufFile::open(model));
    DECANT_ASSIGN(const text::GgufVocabulary vocabulary, gguf_vocabulary(*file));
    return text::Tokenizer::from_gguf(vocabulary, model);
  }
  const fs::path folder = is_file(path) ? path.parent_path() : path;
  std::vector<fs::path> places = {folder / "tokenizer.json"};
  if (folder.filename() == "onnx") places.push_back(folder.parent_path() / "tokenizer.json");
  for (const fs::path& place : places) {
    if (is_file(place)) return from_json_file(place);
  }
  return not_found(model + ": no tokenizer here; looked for " + places.front().string());
}

}  // namespace decant::app
