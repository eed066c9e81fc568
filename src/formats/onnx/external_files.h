#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace decant::onnx {

/// Locations of the external data files that a model's initializers name, in sub-graphs and functions too,
/// each once; as written in the file, unchecked. Only the messages are read, no tensor.
Result<std::vector<std::string>> external_files(const std::string& path);

}  // namespace decant::onnx
