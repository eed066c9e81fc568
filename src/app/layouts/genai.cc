#include <nlohmann/json.hpp>

#include "app/layouts/layouts.h"
#include "base/file_writer.h"

namespace decant::app::layouts {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Role = Component::Role;

constexpr int64_t kMaxLayers = 4096;

/// Reads one section ("decoder", "encoder") of genai_config.json. Names that the section leaves out have
/// onnxruntime-genai's own defaults, which are the usual ones.
class Section {
 public:
  Section(const std::string& config, const std::string& name, const json& section)
      : where_(config + ": model." + name), section_(section) {}

  /// The graph's own name for `key` ("inputs.input_ids") becomes `usual`; with a %d in both, for every layer.
  Status name(const char* group, const char* key, const std::string& usual) {
    if (!section_.contains(group) || !section_[group].is_object() || !section_[group].contains(key))
      return ok_status();
    const json& value = section_[group][key];
    if (!value.is_string()) return invalid_model(where_ + "." + group + "." + key + " is not a name");
    const std::string own = value.get<std::string>();
    if (usual.find("%d") == std::string::npos) {
      names_[own] = usual;
      return ok_status();
    }
    const size_t at = own.find("%d");
    if (at == std::string::npos || own.find('%', at + 1) != std::string::npos)
      return invalid_model(where_ + "." + group + "." + key + " is \"" + own + "\": one %d was expected");
    DECANT_ASSIGN(const int64_t layers, integer("num_hidden_layers"));
    if (layers < 0 || layers > kMaxLayers)
      return invalid_model(where_ + ".num_hidden_layers is " + std::to_string(layers));
    const size_t usual_at = usual.find("%d");
    for (int64_t i = 0; i < layers; ++i) {
      const std::string n = std::to_string(i);
      names_[own.substr(0, at) + n + own.substr(at + 2)] =
          usual.substr(0, usual_at) + n + usual.substr(usual_at + 2);
    }
    return ok_status();
  }

  Result<Component> component(const fs::path& folder, Role role) const {
    if (!section_.contains("filename") || !section_["filename"].is_string())
      return invalid_model(where_ + ".filename is missing");
    const std::string file = section_["filename"].get<std::string>();
    if (!plain_name(file))
      return invalid_model(where_ + ".filename: '" + file + "' is outside the model's folder");
    if (!is_file(folder / file)) return not_found(where_ + ": " + file + " is missing");
    Component c{fs::path(file).stem().string(), (folder / file).string(), role};
    for (const auto& [own, usual] : names_) {
      if (own != usual) c.usual_names[own] = usual;
    }
    if (section_.contains("head_size")) {
      DECANT_ASSIGN(c.head_size, integer("head_size"));
      if (c.head_size < 0 || c.head_size > (int64_t{1} << 20))
        return invalid_model(where_ + ".head_size is " + std::to_string(c.head_size));
    }
    return c;
  }

 private:
  Result<int64_t> integer(const char* key) const {
    if (!section_.contains(key) || !section_[key].is_number_integer())
      return invalid_model(where_ + "." + key + " is missing or no integer");
    return section_[key].get<int64_t>();
  }
  std::string where_;
  const json& section_;
  std::map<std::string, std::string> names_;
};

}  // namespace

Result<Layout> from_genai(const fs::path& folder) {
  const std::string path = (folder / "genai_config.json").string();
  DECANT_ASSIGN(const std::string text, read_file(path, uint64_t{64} << 20));
  const json root = json::parse(text, nullptr, false);
  if (root.is_discarded() || !root.is_object() || !root.contains("model") || !root["model"].is_object())
    return invalid_model(path + ": it has no object 'model'");
  const json& model = root["model"];
  if (!model.contains("decoder") || !model["decoder"].is_object())
    return invalid_model(path + ": it has no object 'model.decoder'");
  if (model["decoder"].contains("pipeline"))
    return unsupported(path + ": model.decoder.pipeline: a decoder in several pieces is not supported");

  Layout layout;
  layout.description = "onnxruntime-genai folder (genai_config.json)";
  layout.folder = folder.string();
  const bool crossed = model.contains("encoder") && model["encoder"].is_object();

  Section decoder(path, "decoder", model["decoder"]);
  const std::string cache = crossed ? ".%d.decoder." : ".%d.";
  const std::pair<const char*, std::string> inputs[] = {
      {"input_ids", "input_ids"},
      {"attention_mask", "attention_mask"},
      {"position_ids", "position_ids"},
      {"encoder_hidden_states", "encoder_hidden_states"},
      {"encoder_attention_mask", "encoder_attention_mask"},
      {"past_key_names", "past_key_values" + cache + "key"},
      {"past_value_names", "past_key_values" + cache + "value"},
      {"cross_past_key_names", "past_key_values.%d.encoder.key"},
      {"cross_past_value_names", "past_key_values.%d.encoder.value"}};
  for (const auto& [key, usual] : inputs) DECANT_RETURN_IF_ERROR(decoder.name("inputs", key, usual));
  const std::pair<const char*, std::string> outputs[] = {
      {"logits", "logits"},
      {"present_key_names", "present" + cache + "key"},
      {"present_value_names", "present" + cache + "value"}};
  for (const auto& [key, usual] : outputs) DECANT_RETURN_IF_ERROR(decoder.name("outputs", key, usual));
  DECANT_ASSIGN(Component c, decoder.component(folder, Role::kDecoder));
  layout.components.push_back(std::move(c));

  if (crossed) {
    Section encoder(path, "encoder", model["encoder"]);
    DECANT_RETURN_IF_ERROR(encoder.name("inputs", "input_ids", "input_ids"));
    DECANT_RETURN_IF_ERROR(encoder.name("inputs", "attention_mask", "attention_mask"));
    DECANT_RETURN_IF_ERROR(encoder.name("inputs", "audio_features", "input_features"));
    DECANT_RETURN_IF_ERROR(encoder.name("outputs", "encoder_hidden_states", "last_hidden_state"));
    DECANT_RETURN_IF_ERROR(
        encoder.name("outputs", "cross_present_key_names", "past_key_values.%d.encoder.key"));
    DECANT_RETURN_IF_ERROR(
        encoder.name("outputs", "cross_present_value_names", "past_key_values.%d.encoder.value"));
    DECANT_ASSIGN(Component e, encoder.component(folder, Role::kEncoder));
    layout.components.push_back(std::move(e));
  }
  for (const char* part : {"embedding", "vision", "speech"}) {
    if (!model.contains(part) || !model[part].is_object() || !model[part].contains("filename")) continue;
    DECANT_ASSIGN(Component p, Section(path, part, model[part]).component(folder, Role::kPart));
    layout.components.push_back(std::move(p));
  }
  if (model["decoder"].contains("inputs") && model["decoder"]["inputs"].contains("inputs_embeds"))
    layout.missing = "a decoder that takes input_ids: this one takes embeddings, which another graph makes";
  return layout;
}

Result<GenaiText> genai_text(const fs::path& folder) {
  GenaiText result;
  if (!is_file(folder / "genai_config.json")) return result;
  const std::string path = (folder / "genai_config.json").string();
  DECANT_ASSIGN(const std::string text, read_file(path, uint64_t{64} << 20));
  const json root = json::parse(text, nullptr, false);
  if (root.is_discarded() || !root.is_object() || !root.contains("model") || !root["model"].is_object())
    return invalid_model(path + ": it has no object 'model'");
  const json& model = root["model"];
  if (model.contains("eos_token_id")) {
    const json ids =
        model["eos_token_id"].is_array() ? model["eos_token_id"] : json::array({model["eos_token_id"]});
    for (const json& id : ids) {
      if (!id.is_number_integer())
        return invalid_model(path + ": model.eos_token_id is no token id or list of them");
      result.eos_token_ids.push_back(id.get<int64_t>());
    }
  }
  if (model.contains("context_length") && model["context_length"].is_number_integer())
    result.context_length = model["context_length"].get<int64_t>();
  return result;
}

}  // namespace decant::app::layouts
