#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "models/builder.h"
#include "models/rope.h"

namespace decant::models {

/// The parts that decoders are made of. Each takes the module's path in the checkpoint ("model.layers.0.mlp")
/// and names its weights and nodes by it. Shapes: hidden states [batch, sequence, size], heads [batch, heads,
/// sequence, head_dim].

/// Rows of `path`.weight [vocabulary, size] for the token ids.
ir::Value* embedding(Builder& b, const std::string& path, ir::Value* ids, int64_t vocabulary, int64_t size);

/// x · `path`.weightᵀ (+ `path`.bias); the checkpoint's weight is [out, in].
ir::Value* linear(Builder& b, const std::string& path, ir::Value* x, int64_t in, int64_t out, bool bias);

/// x · Eᵀ for the table E [vocabulary, size] that `embedding` of the same path uses: stored once.
ir::Value* tied_head(Builder& b, const std::string& path, ir::Value* x, int64_t vocabulary, int64_t size);

/// x / sqrt(mean(x²) + epsilon) · `path`.weight, the norm in float32.
ir::Value* rms_norm(Builder& b, const std::string& path, ir::Value* x, int64_t size, double epsilon);

/// [batch, sequence, heads * head_dim] to heads, and back.
ir::Value* split_heads(Builder& b, const std::string& path, ir::Value* x, int64_t heads, int64_t head_dim);
ir::Value* merge_heads(Builder& b, const std::string& path, ir::Value* x, int64_t heads, int64_t head_dim);

/// Rotates the channel pairs (i, i + head_dim / 2) of heads.
ir::Value* rotate(Builder& b, const std::string& path, ir::Value* x, const Rotary& rotary);

/// softmax(q kᵀ / sqrt(head_dim) + mask) v, scores and softmax in float32. Query head h reads key-value head
/// h / (query heads / key-value heads). `mask` is bool [batch, 1, queries, keys], true where a query may
/// attend; a row without any gives zeros.
ir::Value* attend(Builder& b, const std::string& path, ir::Value* q, ir::Value* k, ir::Value* v,
                  ir::Value* mask, int64_t head_dim);

/// The activations that Transformers calls `hidden_act`. kUnsupported lists the known ones.
enum class Activation { kSilu, kGelu, kGeluTanh, kRelu };
Result<Activation> parse_activation(const std::string& name);
ir::Value* activate(Builder& b, const std::string& path, ir::Value* x, Activation activation);

/// down_proj(act(gate_proj(x)) * up_proj(x)).
struct GatedMlp {
  int64_t hidden = 0, intermediate = 0;
  bool bias = false;
  Activation activation = Activation::kSilu;
};
ir::Value* gated_mlp(Builder& b, const std::string& path, ir::Value* x, const GatedMlp& mlp);

}  // namespace decant::models
