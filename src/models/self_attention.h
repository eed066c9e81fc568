#pragma once

#include <cstdint>
#include <string>

#include "models/blocks.h"
#include "models/decoder.h"

namespace decant::models {

/// Grouped-query attention with rotary positions over the decoder's cache. Weights: `path`.{q,k,v,o}_proj.
struct SelfAttention {
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;  ///< divides heads
  int64_t head_dim = 0;
  bool bias = false;  ///< on all four projections
};

/// x [batch, sequence, hidden] to the same shape; the keys and values of `layer` go through the decoder's
/// cache.
ir::Value* self_attention(Builder& b, const std::string& path, ir::Value* x, const SelfAttention& attention,
                          const Rotary& rotary, Decoder& decoder, int64_t layer);

}  // namespace decant::models
