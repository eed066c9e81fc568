#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/status.h"
#include "ir/graph.h"
#include "models/config.h"
#include "models/decoder.h"
#include "models/weights.h"

namespace decant::models {

struct CaptureOptions {
  DType dtype =
      DType::kFloat32;  ///< of weights, activations, caches and logits: float32, float16 or bfloat16
  CacheForm cache = CacheForm::kDynamic;
  std::optional<int64_t> max_cache_len = {};  ///< static cache only; absent: the symbol max_cache_len
};

/// One model family: how its checkpoint becomes a graph.
struct Architecture {
  std::string_view model_type;  ///< of config.json
  Result<std::unique_ptr<ir::Graph>> (*capture)(const ConfigView& config, WeightReader& weights,
                                                const CaptureOptions& options) = nullptr;
};

/// `DECANT_ARCHITECTURE(llama) { return {"llama", &capture}; }` at the start of a line in
/// architectures/<file>.cc, inside namespace decant::models: the build lists the folder's lines.
#define DECANT_ARCHITECTURE(id)            \
  Architecture decant_architecture_##id(); \
  Architecture decant_architecture_##id()

/// The known model types, sorted.
std::vector<std::string_view> model_types();

/// The graph of the model that `config` describes, typed, with weights from `source`, which may go
/// afterwards: the constants keep what they need. Inputs and outputs are those of Decoder. Errors:
/// kUnsupported for a model_type without an architecture (lists the known ones) or a setting it lacks;
/// kInvalidModel for impossible settings, and for tensors that are missing, misshapen or unused (lists the
/// names).
Result<std::unique_ptr<ir::Graph>> capture(const ConfigView& config, const WeightSource& source,
                                           const CaptureOptions& options);

}  // namespace decant::models
