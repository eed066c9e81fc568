#include "models/pre_norm_decoder.h"
#include "models/sliding_layers.h"

namespace decant::models {
namespace {

/// Qwen 3 (arXiv:2505.09388): the Llama decoder with RMS norms over each head's queries and keys.
Result<std::unique_ptr<ir::Graph>> capture_qwen3(const ConfigView& config, WeightReader& weights,
                                                 const CaptureOptions& options) {
  DECANT_ASSIGN(const DecoderConfig c, DecoderConfig::read(config));
  PreNormDecoder model = pre_norm_decoder(c);
  DECANT_ASSIGN(model.attention.bias, config.get_bool("attention_bias", false));
  model.attention.output_bias = model.attention.bias;
  model.attention.norm_epsilon = c.epsilon;
  DECANT_ASSIGN(model.window, window_of_layers(config, c.layers));
  return capture(model, weights, options);
}

}  // namespace

DECANT_ARCHITECTURE(qwen3) { return {"qwen3", &capture_qwen3}; }

}  // namespace decant::models
