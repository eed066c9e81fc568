#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace decant::app {

struct HubOptions {
  std::string dtype;  ///< which of a repository's ONNX variants ("q4", "fp16", ...); empty: the default
  /// Called while downloading, from any thread but one at a time.
  std::function<void(int64_t done_bytes, int64_t total_bytes)> on_progress;
};

/// A model argument as a local path: paths are returned as they are; `hf://owner/name[@revision][/file]` is
/// looked up in the hub cache, and downloaded into it when it is not there. Of a repository come only the
/// files that its export needs: one ONNX variant with its external data, else one GGUF file, else the
/// checkpoint; and the configuration, tokenizer and template files.
Result<std::string> local_model(const std::string& model, const HubOptions& options = {});

}  // namespace decant::app
