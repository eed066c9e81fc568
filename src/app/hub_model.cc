#include "app/hub_model.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "formats/onnx/external_files.h"
#include "hub/snapshot.h"

namespace decant::app {
namespace {

namespace fs = std::filesystem;
using Files = std::vector<std::string>;

bool contains(const Files& files, std::string_view path) {
  return std::ranges::find(files, path) != files.end();
}

std::string_view folder_of(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// Configuration, tokenizer and template files, at the top or beside the model.
bool is_side_file(std::string_view path, std::string_view model_folder) {
  const std::string_view folder = folder_of(path);
  const std::string_view name = base_name(path);
  if (!folder.empty() && folder != model_folder && folder != "additional_chat_templates") return false;
  if (name.ends_with(".index.json")) return false;
  return name.ends_with(".json") || name.ends_with(".jinja") || name.ends_with(".tiktoken") ||
         name == "tokenizer.model" || name == "spiece.model" || name == "merges.txt" || name == "vocab.txt";
}

/// transformers.js' names of variants, and the suffixes of their files.
Result<std::string> suffix_of(const std::string& dtype) {
  if (dtype.empty() || dtype == "fp32") return std::string();
  if (dtype == "q8") return std::string("_quantized");
  if (std::ranges::all_of(dtype, [](unsigned char c) { return std::isalnum(c); })) return "_" + dtype;
  return invalid_argument("dtype '" + dtype + "': one of fp32, fp16, q8, int8, uint8, q4, q4f16, bnb4");
}

bool is_variant(std::string_view stem, std::string_view suffix) {
  if (!suffix.empty()) return stem.ends_with(suffix);
  return std::ranges::none_of(
      std::initializer_list<std::string_view>{"_fp16", "_int8", "_uint8", "_quantized", "_q1", "_q1f16",
                                              "_q2", "_q2f16", "_q4", "_q4f16", "_bnb4"},
      [&](std::string_view known) { return stem.ends_with(known); });
}

std::string joined(const Files& files) {
  std::string out;
  for (const std::string& file : files) out += (out.empty() ? "" : ", ") + file;
  return out;
}

/// The graphs of one variant: those of the top folder, else of onnx/, else of the one folder that has any.
Result<Files> onnx_files(const Files& files, const std::string& dtype) {
  DECANT_ASSIGN(const std::string suffix, suffix_of(dtype));
  Files graphs;
  for (const std::string& file : files) {
    if (file.ends_with(".onnx")) graphs.push_back(file);
  }
  if (graphs.empty()) return Files();
  std::string folder(folder_of(graphs.front()));
  for (const std::string_view preferred : {"onnx", ""}) {
    if (std::ranges::any_of(graphs, [&](const std::string& g) { return folder_of(g) == preferred; }))
      folder = preferred;
  }
  Files chosen;
  for (const std::string& graph : graphs) {
    const std::string_view name = base_name(graph);
    if (folder_of(graph) == folder && is_variant(name.substr(0, name.size() - 5), suffix))
      chosen.push_back(graph);
  }
  if (chosen.empty())
    return not_found("no ONNX file of dtype '" + (dtype.empty() ? "fp32" : dtype) + "'; there are " +
                     joined(graphs));
  // A merged decoder does what the split pair does.
  const auto merged = std::ranges::find_if(chosen, [&](const std::string& c) {
    return base_name(c) == "decoder_model_merged" + suffix + ".onnx";
  });
  if (merged != chosen.end()) {
    std::erase_if(chosen, [&](const std::string& c) {
      return base_name(c) == "decoder_model" + suffix + ".onnx" ||
             base_name(c) == "decoder_with_past_model" + suffix + ".onnx";
    });
  }
  return chosen;
}

Result<Files> choose_model(const Files& files, const std::string& dtype) {
  DECANT_ASSIGN(Files chosen, onnx_files(files, dtype));
  if (!chosen.empty()) return chosen;
  for (const std::string& file : files) {
    if (file.ends_with(".gguf")) chosen.push_back(file);
  }
  if (chosen.size() == 1) return chosen;
  if (chosen.size() > 1)
    return not_found("several GGUF files; name one as hf://owner/name/FILE: " + joined(chosen));
  for (const std::string& file : files) {
    if (folder_of(file).empty() && (file.ends_with(".safetensors") || file == "model.safetensors.index.json"))
      chosen.push_back(file);
  }
  if (contains(chosen, "model.safetensors")) {
    std::erase_if(chosen, [](const std::string& file) { return file != "model.safetensors"; });
  } else if (!contains(chosen, "model.safetensors.index.json")) {
    return not_found("the repository has no .onnx, .gguf or model.safetensors file");
  }
  return chosen;
}

hub::Choose chooser(const hub::Reference& reference, const std::string& dtype) {
  return [&reference, dtype](const Files& files) -> Result<Files> {
    Files model = {reference.file};
    if (reference.file.empty()) {
      Result<Files> chosen = choose_model(files, dtype);
      if (!chosen.ok()) return std::move(chosen).status().with_context("hf://" + reference.repository);
      model = *std::move(chosen);
    } else if (!contains(files, reference.file)) {
      return not_found("hf://" + reference.repository + ": no file '" + reference.file + "'");
    }
    Files out;
    for (const std::string& file : files) {
      if (is_side_file(file, folder_of(model.front())) && !contains(model, file)) out.push_back(file);
    }
    out.insert(out.end(), model.begin(), model.end());
    return out;
  };
}

Result<Files> follow(const std::string& file, const std::string& local) {
  if (!file.ends_with(".onnx")) return Files();
  DECANT_ASSIGN(Files names, onnx::external_files(local));
  for (std::string& name : names) {
    name = (fs::path(folder_of(file)) / name).lexically_normal().generic_string();
    if (!hub::is_safe_path(name))
      return invalid_model(local + ": external data '" + name + "' is outside the repository");
  }
  return names;
}

}  // namespace

Result<std::string> local_model(const std::string& model, const HubOptions& options) {
  if (!hub::is_reference(model)) return model;
  DECANT_ASSIGN(const hub::Reference reference, hub::parse_reference(model));
  hub::SnapshotOptions snapshot;
  snapshot.on_progress = options.on_progress;
  DECANT_ASSIGN(const std::string folder,
                hub::snapshot(reference, chooser(reference, options.dtype), &follow, snapshot));
  if (!reference.file.empty()) return folder + "/" + reference.file;
  return folder;
}

}  // namespace decant::app
