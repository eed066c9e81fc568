#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "models/blocks.h"
#include "models/decoder.h"

namespace decant::models {

/// Grouped-query attention with rotary positions over the decoder's cache. Weights: `path`.{q,k,v,o}_proj,
/// and `path`.{q,k}_norm where heads are normalized.
struct SelfAttention {
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;  ///< divides heads
  int64_t head_dim = 0;
  bool bias = false;         ///< of the projections to queries, keys and values
  bool output_bias = false;  ///< of the projection behind
  std::optional<double>
      norm_epsilon;  ///< of RMS norms over each head of queries and keys, before they rotate
};

/// x [batch, sequence, hidden] to the same shape; the keys and values of `layer` go through the decoder's
/// cache.
ir::Value* self_attention(Builder& b, const std::string& path, ir::Value* x, const SelfAttention& attention,
                          const Rotary& rotary, Decoder& decoder, int64_t layer);

}  // namespace decant::models
