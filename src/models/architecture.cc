#include "models/architecture.h"

#include <algorithm>

#include "ir/op.h"

namespace decant::models {

#define X(id) Architecture decant_architecture_##id();
#include "architecture_list.inc"
#undef X

namespace {

std::vector<Architecture> architectures() {
  return {
#define X(id) decant_architecture_##id(),
#include "architecture_list.inc"
#undef X
  };
}

}  // namespace

std::vector<std::string_view> model_types() {
  std::vector<std::string_view> out;
  for (const Architecture& a : architectures()) out.push_back(a.model_type);
  std::sort(out.begin(), out.end());
  return out;
}

Result<std::unique_ptr<ir::Graph>> capture(const ConfigView& config, const WeightSource& source,
                                           const CaptureOptions& options) {
  if (options.dtype != DType::kFloat32 && options.dtype != DType::kFloat16 &&
      options.dtype != DType::kBFloat16) {
    return invalid_argument("a model is captured as float32, float16 or bfloat16, not as " +
                            std::string(to_string(options.dtype)));
  }
  if (options.max_cache_len && (options.cache != CacheForm::kStatic || *options.max_cache_len <= 0)) {
    return invalid_argument("a cache length is a positive number, and for the static cache only");
  }
  DECANT_ASSIGN(const std::string model_type, config.get_string("model_type"));
  for (const Architecture& architecture : architectures()) {
    if (architecture.model_type != model_type) continue;
    WeightReader weights(source);
    DECANT_ASSIGN(std::unique_ptr<ir::Graph> graph, architecture.capture(config, weights, options));
    DECANT_RETURN_IF_ERROR(weights.finish());
    DECANT_RETURN_IF_ERROR(ir::infer_types(*graph));
    return graph;
  }
  std::string known;
  for (std::string_view type : model_types()) known += (known.empty() ? "" : ", ") + std::string(type);
  return unsupported("model_type '" + model_type + "' has no architecture; supported: " + known);
}

}  // namespace decant::models
