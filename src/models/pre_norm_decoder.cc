#include "models/pre_norm_decoder.h"

#include <string>

#include "models/blocks.h"
#include "models/decoder.h"

namespace decant::models {

PreNormDecoder pre_norm_decoder(const DecoderConfig& c) {
  PreNormDecoder model;
  model.config = c;
  model.attention.hidden = c.hidden;
  model.attention.heads = c.heads;
  model.attention.kv_heads = c.kv_heads;
  model.attention.head_dim = c.head_dim;
  model.mlp = {c.hidden, c.intermediate, /*bias=*/false, c.activation};
  return model;
}

Result<std::unique_ptr<ir::Graph>> capture(const PreNormDecoder& model, WeightReader& weights,
                                           const CaptureOptions& options) {
  const DecoderConfig& c = model.config;
  if (model.window && *model.window <= 0)
    return invalid_model("config: sliding_window is " + std::to_string(*model.window));
  Builder b(weights, options.dtype);
  Decoder decoder(b, {c.layers, c.kv_heads, c.head_dim, model.window}, options.cache, options.max_cache_len);
  DECANT_ASSIGN(const Rotary rope, rotary(b, decoder.position_ids(), c.rope, c.head_dim, c.max_positions));

  ir::Value* x = embedding(b, "model.embed_tokens", decoder.input_ids(), c.vocabulary, c.hidden);
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    const std::string path = "model.layers." + std::to_string(layer);
    ir::Value* h = rms_norm(b, path + ".input_layernorm", x, c.hidden, c.epsilon);
    h = self_attention(b, path + ".self_attn", h, model.attention, rope, decoder, layer);
    x = b.op("Add", {x, h}, {}, path);
    h = rms_norm(b, path + ".post_attention_layernorm", x, c.hidden, c.epsilon);
    x = b.op("Add", {x, gated_mlp(b, path + ".mlp", h, model.mlp)}, {}, path);
  }
  x = rms_norm(b, "model.norm", x, c.hidden, c.epsilon);

  if (c.tied) weights.ignore("lm_head.weight");
  decoder.finish(c.tied ? tied_head(b, "model.embed_tokens", x, c.vocabulary, c.hidden)
                        : linear(b, "lm_head", x, c.hidden, c.vocabulary, false));
  return b.take();
}

}  // namespace decant::models
