#include "models/pre_norm_decoder.h"

namespace decant::models {
namespace {

/// Mistral (arXiv:2310.06825): the Llama decoder with a sliding window over the attended positions,
/// `sliding_window` (null: none), and no biases.
Result<std::unique_ptr<ir::Graph>> capture_mistral(const ConfigView& config, WeightReader& weights,
                                                   const CaptureOptions& options) {
  DECANT_ASSIGN(const DecoderConfig c, DecoderConfig::read(config));
  PreNormDecoder model = pre_norm_decoder(c);
  if (config.has("sliding_window")) {
    DECANT_ASSIGN(model.window, config.get_int("sliding_window"));
  }
  return capture(model, weights, options);
}

}  // namespace

DECANT_ARCHITECTURE(mistral) { return {"mistral", &capture_mistral}; }

}  // namespace decant::models
