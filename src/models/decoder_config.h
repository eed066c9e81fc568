#pragma once

#include <cstdint>

#include "base/status.h"
#include "models/blocks.h"
#include "models/config.h"

namespace decant::models {

/// The settings that decoders of the Llama kind share, under the names that config.json gives them. After
/// read() all sizes are positive and agree with each other.
struct DecoderConfig {
  int64_t vocabulary = 0;                     ///< vocab_size
  int64_t hidden = 0;                         ///< hidden_size
  int64_t intermediate = 0;                   ///< intermediate_size
  int64_t layers = 0;                         ///< num_hidden_layers
  int64_t heads = 0;                          ///< num_attention_heads
  int64_t kv_heads = 0;                       ///< num_key_value_heads, else num_attention_heads
  int64_t head_dim = 0;                       ///< head_dim, else hidden / heads
  int64_t max_positions = 0;                  ///< max_position_embeddings
  double epsilon = 0;                         ///< rms_norm_eps
  bool tied = false;                          ///< tie_word_embeddings
  Activation activation = Activation::kSilu;  ///< hidden_act
  RopeParameters rope;

  static Result<DecoderConfig> read(const ConfigView& config);
};

}  // namespace decant::models
