#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"
#include "ir/graph.h"

namespace decant::onnx {

/// What a model file says about itself.
struct ModelInfo {
  int64_t ir_version = 0;
  std::map<std::string, int64_t> opset_imports;  ///< by domain; "ai.onnx" is spelled ""
  std::string producer;                          ///< name and version, as "pytorch 2.13.0"; may be empty
};

/// Reads a model file into a graph of the newest operator versions.
///
/// Weights stay where they are: constants view the mapped model file and the mapped external data files (each
/// mapped once, found beneath the folder of `path` only) and keep them alive. Only tensors in the typed
/// fields (float_data and its siblings) are copied.
///
/// Initializers and Constant nodes become constants, also initializers that are listed as inputs. Local
/// functions are inlined. Sub-graphs refer to the values around them directly. Nodes of opset 6 to 28 (and of
/// older ones where the operator has not changed) are rewritten to the newest form (adapters/); operators
/// unknown to the op table are kept, and reported by ir::infer_types. Values other than inputs and constants
/// are not typed. `metadata` has "producer" only.
///
/// Errors: invalid_model (names the file, and the byte offset, node or tensor), unsupported (an opset,
/// element type or value type beyond what the graph has), not_found, resource.
Result<std::unique_ptr<ir::Graph>> read_model(const std::string& path);

/// The same for a model in memory that `owner` keeps alive. `folder` is where external data is looked for,
/// empty when there is none; `name` stands in messages.
Result<std::unique_ptr<ir::Graph>> read_model_bytes(std::span<const std::byte> bytes,
                                                    std::shared_ptr<const void> owner,
                                                    const std::string& folder, const std::string& name);

/// Reads the header only; the graph is skipped.
Result<ModelInfo> read_model_info(const std::string& path);

}  // namespace decant::onnx
