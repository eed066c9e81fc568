#include <optional>
#include <string>

#include "models/architecture.h"
#include "models/blocks.h"
#include "models/decoder_config.h"
#include "models/self_attention.h"

namespace decant::models {
namespace {

/// Mistral (arXiv:2310.06825): the Llama decoder with a sliding window over the attended positions,
/// `sliding_window` (null: none), and no biases.
Result<std::unique_ptr<ir::Graph>> capture_mistral(const ConfigView& config, WeightReader& weights,
                                                   const CaptureOptions& options) {
  DECANT_ASSIGN(const DecoderConfig c, DecoderConfig::read(config));
  std::optional<int64_t> window;
  if (config.has("sliding_window")) {
    DECANT_ASSIGN(window, config.get_int("sliding_window"));
  }
  if (window && *window <= 0) return invalid_model("config: sliding_window is " + std::to_string(*window));
  const SelfAttention attention{c.hidden, c.heads, c.kv_heads, c.head_dim, /*bias=*/false};
  const GatedMlp mlp{c.hidden, c.intermediate, /*bias=*/false, c.activation};

  Builder b(weights, options.dtype);
  Decoder decoder(b, {c.layers, c.kv_heads, c.head_dim, window}, options.cache, options.max_cache_len);
  DECANT_ASSIGN(const Rotary rope, rotary(b, decoder.position_ids(), c.rope, c.head_dim, c.max_positions));

  ir::Value* x = embedding(b, "model.embed_tokens", decoder.input_ids(), c.vocabulary, c.hidden);
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    const std::string path = "model.layers." + std::to_string(layer);
    ir::Value* h = rms_norm(b, path + ".input_layernorm", x, c.hidden, c.epsilon);
    h = self_attention(b, path + ".self_attn", h, attention, rope, decoder, layer);
    x = b.op("Add", {x, h}, {}, path);
    h = rms_norm(b, path + ".post_attention_layernorm", x, c.hidden, c.epsilon);
    x = b.op("Add", {x, gated_mlp(b, path + ".mlp", h, mlp)}, {}, path);
  }
  x = rms_norm(b, "model.norm", x, c.hidden, c.epsilon);

  if (c.tied) weights.ignore("lm_head.weight");
  decoder.finish(c.tied ? tied_head(b, "model.embed_tokens", x, c.vocabulary, c.hidden)
                        : linear(b, "lm_head", x, c.hidden, c.vocabulary, false));
  return b.take();
}

}  // namespace

DECANT_ARCHITECTURE(mistral) { return {"mistral", &capture_mistral}; }

}  // namespace decant::models
