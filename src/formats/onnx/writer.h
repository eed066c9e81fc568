#pragma once

#include <string>

#include "base/status.h"
#include "ir/graph.h"

namespace decant::onnx {

struct WriteOptions {
  /// Version of the ONNX operators, 13 to 28. The graph must hold nothing newer: see lower_to_opset.
  int opset = 18;
  /// Name of the file, beside the model, for tensors above 1 KiB; empty: all tensors go into the model
  /// itself, which then has to stay below 2 GiB.
  std::string external_data_name;
  std::string producer_name = "decant";
  std::string producer_version;
};

/// Writes a typed graph as an ONNX model. Output is the same for the same graph, byte for byte.
///
/// Every constant is written once, however many values share it; its rows are streamed, so that memory holds
/// the model without its weights and one buffer of at most 16 MiB (external data) above the mapped sources.
/// External tensors start at multiples of 4096 bytes (64 when smaller than that). The data file gets its name
/// first, the model last; nothing with the final names appears on an error.
///
/// Inputs and outputs must have a dtype; dims are written as numbers or as the text of Dim::to_string.
///
/// Errors: invalid_argument (an opset out of range, a bad data name, 2 GiB passed without external data, a
/// value without a type), unsupported (a node newer than the opset, named), resource (disk).
Status write_model(const ir::Graph& graph, const std::string& path, const WriteOptions& options = {});

}  // namespace decant::onnx
