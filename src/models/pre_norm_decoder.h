#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "models/architecture.h"
#include "models/decoder_config.h"
#include "models/self_attention.h"

namespace decant::models {

/// A decoder whose layers are h = x + attention(norm(x)), y = h + mlp(norm(h)), with rotary positions, RMS
/// norms and a gated MLP. Weights have Llama's names: model.embed_tokens, model.layers.N.{input_layernorm,
/// self_attn, post_attention_layernorm, mlp}, model.norm, lm_head (absent when tied).
struct PreNormDecoder {
  DecoderConfig config;
  SelfAttention attention;
  GatedMlp mlp;
  std::optional<int64_t> window;  ///< positions that a query sees, its own included
};

/// `config`'s sizes, without biases.
PreNormDecoder pre_norm_decoder(const DecoderConfig& config);

Result<std::unique_ptr<ir::Graph>> capture(const PreNormDecoder& model, WeightReader& weights,
                                           const CaptureOptions& options);

}  // namespace decant::models
