#include <optional>
#include <string>

#include "models/architecture.h"
#include "models/blocks.h"
#include "models/decoder_config.h"
#include "models/self_attention.h"

namespace decant::models {
namespace {

/// Llama 1 to 3.3 (arXiv:2302.13971, 2307.09288, 2407.21783), and what shares its shape: SmolLM2, TinyLlama.
/// Pre-norm decoder layers of grouped-query attention with rotary positions and a gated MLP:
///   h = x + attention(norm(x)),  y = h + mlp(norm(h)).
Result<std::unique_ptr<ir::Graph>> capture_llama(const ConfigView& config, WeightReader& weights,
                                                 const CaptureOptions& options) {
  DECANT_ASSIGN(const DecoderConfig c, DecoderConfig::read(config));
  DECANT_ASSIGN(const bool attention_bias, config.get_bool("attention_bias", false));
  DECANT_ASSIGN(const bool mlp_bias, config.get_bool("mlp_bias", false));
  const SelfAttention attention{c.hidden, c.heads, c.kv_heads, c.head_dim, attention_bias};
  const GatedMlp mlp{c.hidden, c.intermediate, mlp_bias, c.activation};

  Builder b(weights, options.dtype);
  Decoder decoder(b, {c.layers, c.kv_heads, c.head_dim, std::nullopt}, options.cache, options.max_cache_len);
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

DECANT_ARCHITECTURE(llama) { return {"llama", &capture_llama}; }

}  // namespace decant::models
