#include "models/pre_norm_decoder.h"

namespace decant::models {
namespace {

/// Llama 1 to 3.3 (arXiv:2302.13971, 2307.09288, 2407.21783), and what shares its shape: SmolLM2, TinyLlama.
Result<std::unique_ptr<ir::Graph>> capture_llama(const ConfigView& config, WeightReader& weights,
                                                 const CaptureOptions& options) {
  DECANT_ASSIGN(const DecoderConfig c, DecoderConfig::read(config));
  PreNormDecoder model = pre_norm_decoder(c);
  DECANT_ASSIGN(model.attention.bias, config.get_bool("attention_bias", false));
  model.attention.output_bias = model.attention.bias;
  DECANT_ASSIGN(model.mlp.bias, config.get_bool("mlp_bias", false));
  return capture(model, weights, options);
}

}  // namespace

DECANT_ARCHITECTURE(llama) { return {"llama", &capture_llama}; }

}  // namespace decant::models
