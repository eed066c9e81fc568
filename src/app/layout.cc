#include "app/layout.h"

#include <algorithm>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "base/file_writer.h"

namespace decant::app {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

/// A manifest names files beside it; anything that could leave the folder is refused.
bool plain_name(const std::string& name) {
  return !name.empty() && name.find('/') == std::string::npos && name.find('\\') == std::string::npos &&
         name != ".." && name != ".";
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
    layout.components.push_back({name, (folder / file).string()});
  }
  if (layout.components.empty()) return invalid_model(manifest + ": no components");
  return layout;
}

Result<Layout> from_folder(const fs::path& folder) {
  if (is_file(folder / "export.json")) return from_manifest(folder);
  Layout layout;
  layout.folder = folder.string();
  for (const fs::path& candidate : {folder / "model.onnx", folder / "onnx" / "model.onnx"}) {
    if (!is_file(candidate)) continue;
    layout.description = candidate.parent_path() == folder ? "single onnx file (model.onnx)"
                                                           : "repository with onnx/model.onnx";
    layout.components.push_back({"model", candidate.string()});
    return layout;
  }
  if (is_file(folder / "config.json") &&
      (is_file(folder / "model.safetensors") || is_file(folder / "model.safetensors.index.json"))) {
    layout.kind = Layout::Kind::kCheckpoint;
    layout.description = "checkpoint (config.json with safetensors)";
    layout.components.push_back({"model", folder.string()});
    return layout;
  }
  return not_found(folder.string() +
                   ": no model here. Looked for export.json, model.onnx, onnx/model.onnx, and config.json "
                   "with model.safetensors");
}

}  // namespace

const Component* Layout::find(const std::string& name) const {
  for (const Component& c : components) {
    if (c.name == name) return &c;
  }
  return nullptr;
}

const Component* Layout::decoder() const {
  if (components.size() == 1) return &components[0];
  if (const Component* c = find("decode")) return c;
  return find("model");
}

Result<Layout> find_layout(const std::string& path) {
  std::error_code error;
  const fs::path p(path);
  if (!fs::exists(p, error)) return not_found(path + ": no such file or folder");
  if (fs::is_directory(p, error)) return from_folder(p);
  Layout layout;
  const std::string extension = p.extension().string();
  const fs::path folder = p.has_parent_path() ? p.parent_path() : fs::path(".");
  if (extension == ".gguf") {
    layout.kind = Layout::Kind::kGguf;
    layout.description = "gguf file";
  } else if (extension == ".onnx") {
    layout.description = "single onnx file";
    layout.folder = folder.string();
  } else {
    return unsupported(path + ": a model is a folder, a .onnx file or a .gguf file");
  }
  layout.components.push_back({p.stem().string(), path});
  return layout;
}

}  // namespace decant::app
