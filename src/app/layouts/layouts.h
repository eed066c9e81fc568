#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "app/layout.h"
#include "base/status.h"

/// One file for each kind of folder; find_layout asks them in turn.
namespace decant::app::layouts {

bool is_file(const std::filesystem::path& path);

/// A manifest names files beside it: whether `name` could not leave the folder.
bool plain_name(const std::string& name);

/// The folder where config and tokenizer of graphs in `graphs` lie: itself, or the one above a repository's
/// onnx/.
std::string config_folder(const std::filesystem::path& graphs);

/// Transformers' exporters: components listed in export.json. Precondition: it is there.
Result<Layout> from_manifest(const std::filesystem::path& folder);

/// onnxruntime-genai: file names, names of inputs and outputs, head size from genai_config.json.
/// Precondition: it is there.
Result<Layout> from_genai(const std::filesystem::path& folder);

/// What genai_config.json says about text.
struct GenaiText {
  std::vector<int64_t> eos_token_ids;
  std::optional<int64_t> context_length;
};
/// Empty when the folder has no such file.
Result<GenaiText> genai_text(const std::filesystem::path& folder);

/// Whether `folder` has files *.onnx.
bool has_graphs(const std::filesystem::path& folder);

/// optimum and transformers.js: graphs known by their names, with suffixes for their dtype. `chosen` is the
/// stem of a file that was named instead of the folder, or empty.
Result<Layout> from_repository(const std::filesystem::path& folder, const std::string& dtype,
                               const std::string& chosen);

}  // namespace decant::app::layouts
