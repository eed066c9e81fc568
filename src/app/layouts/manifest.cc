#include <nlohmann/json.hpp>

#include "app/layouts/layouts.h"
#include "base/file_writer.h"

namespace decant::app::layouts {
namespace {

namespace fs = std::filesystem;
using Role = Component::Role;

Role role_of(const std::string& name) {
  if (name == "model") return Role::kModel;
  if (name == "decode") return Role::kDecoder;
  if (name == "encoder") return Role::kEncoder;
  return Role::kPart;
}

}  // namespace

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

bool plain_name(const std::string& name) {
  return !name.empty() && name.find('/') == std::string::npos && name.find('\\') == std::string::npos &&
         name != ".." && name != ".";
}

std::string config_folder(const fs::path& graphs) {
  if (graphs.filename() == "onnx" && !is_file(graphs / "config.json")) {
    const fs::path above = graphs.has_parent_path() ? graphs.parent_path() : fs::path(".");
    if (is_file(above / "config.json") || is_file(above / "tokenizer.json")) return above.string();
  }
  return graphs.string();
}

Result<Layout> from_manifest(const fs::path& folder) {
  const std::string manifest = (folder / "export.json").string();
  DECANT_ASSIGN(const std::string text, read_file(manifest, uint64_t{64} << 20));
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded() || !json.is_object() || !json.contains("components") ||
      !json["components"].is_object()) {
    return invalid_model(manifest + ": not an export manifest: it has no object 'components'");
  }
  if (json.contains("export_format") && json["export_format"] != "onnx") {
    return unsupported(manifest + ": export_format is " + json["export_format"].dump() +
                       "; decant runs onnx exports");
  }
  Layout layout;
  layout.description = "onnx export with a manifest (export.json)";
  layout.folder = folder.string();
  for (const auto& [name, component] : json["components"].items()) {
    if (!component.is_object() || !component.contains("file") || !component["file"].is_string()) {
      return invalid_model(manifest + ": component '" + name + "' names no file");
    }
    const std::string file = component["file"].get<std::string>();
    if (!plain_name(file))
      return invalid_model(manifest + ": component '" + name + "': file '" + file +
                           "' is outside the export's folder");
    if (!is_file(folder / file))
      return not_found(manifest + ": component '" + name + "': " + file + " is missing");
    layout.components.push_back({name, (folder / file).string(), role_of(name)});
  }
  if (layout.components.empty()) return invalid_model(manifest + ": no components");
  if (layout.components.size() == 1 && layout.components[0].role == Role::kPart)
    layout.components[0].role = Role::kModel;
  if (!layout.decoder()) layout.missing = "a component 'decode' or 'model' in export.json";
  return layout;
}

}  // namespace decant::app::layouts
