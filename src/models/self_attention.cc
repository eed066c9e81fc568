#include "models/self_attention.h"

namespace decant::models {

ir::Value* self_attention(Builder& b, const std::string& path, ir::Value* x, const SelfAttention& attention,
                          const Rotary& rotary, Decoder& decoder, int64_t layer) {
  const int64_t head_dim = attention.head_dim;
  auto project = [&](const std::string& name, int64_t heads) {
    ir::Value* y = linear(b, path + name, x, attention.hidden, heads * head_dim, attention.bias);
    return split_heads(b, path + name, y, heads, head_dim);
  };
  ir::Value* q = rotate(b, path + ".q_proj", project(".q_proj", attention.heads), rotary);
  ir::Value* k = rotate(b, path + ".k_proj", project(".k_proj", attention.kv_heads), rotary);
  ir::Value* v = project(".v_proj", attention.kv_heads);
  const auto [keys, values] = decoder.cache(layer, k, v);
  ir::Value* y = attend(b, path, q, keys, values, decoder.mask(), head_dim);
  y = merge_heads(b, path, y, attention.heads, head_dim);
  return linear(b, path + ".o_proj", y, attention.heads * head_dim, attention.hidden, attention.bias);
}

}  // namespace decant::models
