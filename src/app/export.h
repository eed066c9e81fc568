#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/precision.h"
#include "app/quantization.h"
#include "base/status.h"
#include "models/decoder.h"

namespace decant::app {

/// What `decant export SOURCE -o DIR` is asked for.
struct ExportOptions {
  std::string source;  ///< a .gguf file, or a folder with config.json and safetensors
  std::string output;  ///< folder; created when missing, files of an earlier export are replaced
  std::string format = "onnx";
  Precision precision;
  QuantizationOptions quantization;  ///< where the precision packs weights
  models::CacheForm cache = models::CacheForm::kDynamic;
  std::optional<int64_t>
      max_cache_len;  ///< static cache only; absent: any length, chosen when the graph runs
  int opset = 18;
};

/// "dynamic", "static", "none". kInvalidArgument lists the spellings.
Result<models::CacheForm> parse_cache(std::string_view text);

struct ExportReport {
  std::string architecture;  ///< class name of the config, or its model_type
  std::vector<std::pair<std::string, uint64_t>>
      files;                          ///< name within the folder, bytes; in the order written
  std::vector<PackedWeight> weights;  ///< what the precision packed
};

/// Writes the folder: model.onnx and model.onnx.data, config.json, generation_config.json, tokenizer.json and
/// tokenizer_config.json where the source has them, and export.json, in the layout of Transformers'
/// exporters. Each file appears complete or not at all, export.json last: a folder without it is an
/// unfinished export. Weights are converted, or rounded to few bits, while they are written, one block of
/// rows at a time.
Status export_model(const ExportOptions& options, ExportReport* report = nullptr);

}  // namespace decant::app
