#include "models/pre_norm_decoder.h"
#include "models/sliding_layers.h"

namespace decant::models {
namespace {

/// Qwen 1.5, 2 and 2.5 (arXiv:2407.10671, 2412.15115): the Llama decoder with biases on queries, keys and
/// values.
Result<std::unique_ptr<ir::Graph>> capture_qwen2(const ConfigView& config, WeightReader& weights,
                                                 const CaptureOptions& options) {
  DECANT_ASSIGN(const DecoderConfig c, DecoderConfig::read(config));
  PreNormDecoder model = pre_norm_decoder(c);
  model.attention.bias = true;
  DECANT_ASSIGN(model.window, window_of_layers(config, c.layers));
  return capture(model, weights, options);
}

}  // namespace

DECANT_ARCHITECTURE(qwen2) { return {"qwen2", &capture_qwen2}; }

}  // namespace decant::models
