#include "app/layout.h"

#include <algorithm>
#include <filesystem>

#include "app/layouts/layouts.h"

namespace decant::app {
namespace {

namespace fs = std::filesystem;
using layouts::is_file;

Status no_choice(const fs::path& path, const char* kind) {
  return invalid_argument(path.string() + ": --dtype chooses among a repository's onnx files; this is " +
                          kind);
}

Result<Layout> from_folder(const fs::path& folder, const std::string& dtype) {
  if (is_file(folder / "export.json")) {
    if (!dtype.empty()) return no_choice(folder, "an export with a manifest (export.json)");
    return layouts::from_manifest(folder);
  }
  if (is_file(folder / "genai_config.json")) {
    if (!dtype.empty()) return no_choice(folder, "an onnxruntime-genai folder");
    return layouts::from_genai(folder);
  }
  for (const fs::path& graphs : {folder, folder / "onnx"}) {
    if (layouts::has_graphs(graphs)) return layouts::from_repository(graphs, dtype, "");
  }
  if (is_file(folder / "config.json") &&
      (is_file(folder / "model.safetensors") || is_file(folder / "model.safetensors.index.json"))) {
    if (!dtype.empty()) return no_choice(folder, "a checkpoint");
    Layout layout;
    layout.folder = folder.string();
    layout.kind = Layout::Kind::kCheckpoint;
    layout.description = "checkpoint (config.json with safetensors)";
    layout.components.push_back({"model", folder.string(), Component::Role::kModel});
    return layout;
  }
  return not_found(
      folder.string() +
      ": no model here. Looked for export.json, genai_config.json, *.onnx, onnx/*.onnx, and config.json "
      "with model.safetensors");
}

}  // namespace

const char* to_string(Component::Role role) {
  switch (role) {
    case Component::Role::kPart:
      return "part";
    case Component::Role::kModel:
      return "model";
    case Component::Role::kEncoder:
      return "encoder";
    case Component::Role::kFirstStep:
      return "first step";
    case Component::Role::kDecoder:
      return "decoder";
  }
  return "";
}

const Component* Layout::find(const std::string& name) const {
  for (const Component& c : components) {
    if (c.name == name) return &c;
  }
  return nullptr;
}

const Component* Layout::find(Component::Role role) const {
  for (const Component& c : components) {
    if (c.role == role) return &c;
  }
  return nullptr;
}

const Component* Layout::decoder() const {
  if (const Component* c = find(Component::Role::kDecoder)) return c;
  return find(Component::Role::kModel);
}

const Component* Layout::main() const {
  if (const Component* c = find(chosen)) return c;
  if (components.size() == 1) return &components[0];
  return decoder();
}

Result<Layout> find_layout(const std::string& path, const std::string& dtype) {
  std::error_code error;
  const fs::path p(path);
  if (!fs::exists(p, error)) return not_found(path + ": no such file or folder");
  if (fs::is_directory(p, error)) return from_folder(p, dtype);
  const std::string extension = p.extension().string();
  const fs::path folder = p.has_parent_path() ? p.parent_path() : fs::path(".");
  if (extension == ".onnx") {
    if (is_file(folder / "genai_config.json")) {
      DECANT_ASSIGN(Layout layout, layouts::from_genai(folder));
      layout.chosen = p.stem().string();
      if (layout.find(layout.chosen)) return layout;
    }
    return layouts::from_repository(folder, dtype, p.stem().string());
  }
  if (extension != ".gguf") return unsupported(path + ": a model is a folder, a .onnx file or a .gguf file");
  if (!dtype.empty()) return no_choice(p, "a gguf file");
  Layout layout;
  layout.kind = Layout::Kind::kGguf;
  layout.description = "gguf file";
  layout.components.push_back({p.stem().string(), path, Component::Role::kModel});
  return layout;
}

}  // namespace decant::app
