#include "models/blocks.h"

#include <cmath>

namespace decant::models {

using ir::Value;

Value* embedding(Builder& b, const std::string& path, Value* ids, int64_t vocabulary, int64_t size) {
  return b.op("Gather", {b.weight(path + ".weight", {vocabulary, size}), ids}, {{"axis", int64_t{0}}}, path);
}

Value* linear(Builder& b, const std::string& path, Value* x, int64_t in, int64_t out, bool bias) {
  Value* y = b.op("MatMul", {x, b.transposed_weight(path + ".weight", out, in)}, {}, path);
  return bias ? b.op("Add", {y, b.weight(path + ".bias", {out})}, {}, path) : y;
}

Value* tied_head(Builder& b, const std::string& path, Value* x, int64_t vocabulary, int64_t size) {
  Value* table = b.weight(path + ".weight", {vocabulary, size});
  Value* transposed = b.op("Transpose", {table}, {{"perm", std::vector<int64_t>{1, 0}}}, path);
  return b.op("MatMul", {x, transposed}, {}, "lm_head");
}

Value* rms_norm(Builder& b, const std::string& path, Value* x, int64_t size, double epsilon) {
  return b.op("RMSNormalization", {x, b.weight(path + ".weight", {size})},
              {{"axis", int64_t{-1}}, {"epsilon", static_cast<float>(epsilon)}}, path);
}

Value* split_heads(Builder& b, const std::string& path, Value* x, int64_t heads, int64_t head_dim) {
  x = b.op("Reshape", {x, b.ints({0, 0, heads, head_dim})}, {}, path);
  return b.op("Transpose", {x}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}}, path);
}

Value* merge_heads(Builder& b, const std::string& path, Value* x, int64_t heads, int64_t head_dim) {
  x = b.op("Transpose", {x}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}}, path);
  return b.op("Reshape", {x, b.ints({0, 0, heads * head_dim})}, {}, path);
}

Value* rotate(Builder& b, const std::string& path, Value* x, const Rotary& rotary) {
  return b.op("RotaryEmbedding", {x, rotary.cos, rotary.sin}, {}, path);
}

Value* attend(Builder& b, const std::string& path, Value* q, Value* k, Value* v, Value* mask,
              int64_t head_dim) {
  Builder::Attributes attributes = {
      {"scale", static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim)))}};
  constexpr int64_t kOnnxFloat = 1;
  if (b.dtype() != DType::kFloat32) attributes.emplace_back("softmax_precision", kOnnxFloat);
  return b.op("Attention", {q, k, v, mask}, std::move(attributes), path);
}

Result<Activation> parse_activation(const std::string& name) {
  if (name == "silu" || name == "swish") return Activation::kSilu;
  if (name == "gelu") return Activation::kGelu;
  if (name == "gelu_pytorch_tanh" || name == "gelu_new") return Activation::kGeluTanh;
  if (name == "relu") return Activation::kRelu;
  return unsupported("hidden_act '" + name +
                     "'; known: silu, swish, gelu, gelu_pytorch_tanh, gelu_new, relu");
}

Value* activate(Builder& b, const std::string& path, Value* x, Activation activation) {
  switch (activation) {
    case Activation::kSilu:
      return b.op("Swish", {x}, {}, path);
    case Activation::kGelu:
      return b.op("Gelu", {x}, {}, path);
    case Activation::kGeluTanh:
      return b.op("Gelu", {x}, {{"approximate", std::string("tanh")}}, path);
    case Activation::kRelu:
      return b.op("Relu", {x}, {}, path);
  }
  return x;
}

Value* gated_mlp(Builder& b, const std::string& path, Value* x, const GatedMlp& mlp) {
  Value* gate = linear(b, path + ".gate_proj", x, mlp.hidden, mlp.intermediate, mlp.bias);
  Value* up = linear(b, path + ".up_proj", x, mlp.hidden, mlp.intermediate, mlp.bias);
  Value* product = b.op("Mul", {activate(b, path, gate, mlp.activation), up}, {}, path);
  return linear(b, path + ".down_proj", product, mlp.intermediate, mlp.hidden, mlp.bias);
}

}  // namespace decant::models
