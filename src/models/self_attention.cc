#include "models/self_attention.h"

namespace decant::models {

ir::Value* self_attention(Builder& b, const std::string& path, ir::Value* x, const SelfAttention& attention,
                          const Rotary& rotary, Decoder& decoder, int64_t layer) {
  const int64_t head_dim = attention.head_dim;
  auto project = [&](const std::string& name, int64_t heads) {
    ir::Value* y = linear(b, path + name, x, attention.hidden, heads * head_dim, attention.bias);
    return split_heads(b, path + name, y, heads, head_dim);
  };
  auto normalized = [&](const std::string& name, ir::Value* y) {
    return attention.norm_epsilon ? rms_norm(b, path + name, y, head_dim, *attention.norm_epsilon) : y;
  };
  ir::Value* q = normalized(".q_norm", project(".q_proj", attention.heads));
  ir::Value* k = normalized(".k_norm", project(".k_proj", attention.kv_heads));
  q = rotate(b, path + ".q_proj", q, rotary);
  k = rotate(b, path + ".k_proj", k, rotary);
  ir::Value* v = project(".v_proj", attention.kv_heads);
  const auto [keys, values] = decoder.cache(layer, k, v);
  ir::Value* y = attend(b, path, q, keys, values, decoder.mask(), head_dim);
  y = merge_heads(b, path, y, attention.heads, head_dim);
  return linear(b, path + ".o_proj", y, attention.heads * head_dim, attention.hidden, attention.output_bias);
}

}  // namespace decant::models
