#pragma once

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "ir/op.h"
#include "models/architecture.h"

namespace decant::models::testing {

/// A config of numbers, in memory.
class MapConfig : public ConfigView {
 public:
  std::string model_type;
  std::map<std::string, double, std::less<>> numbers;
  RopeParameters rope_parameters;

  bool has(std::string_view key) const override { return numbers.contains(key) || key == "model_type"; }
  Result<int64_t> get_int(std::string_view key) const override {
    if (auto it = numbers.find(key); it != numbers.end()) return static_cast<int64_t>(it->second);
    return not_found("config: no " + std::string(key));
  }
  Result<double> get_double(std::string_view key) const override {
    if (auto it = numbers.find(key); it != numbers.end()) return it->second;
    return not_found("config: no " + std::string(key));
  }
  Result<bool> get_bool(std::string_view key) const override {
    if (auto it = numbers.find(key); it != numbers.end()) return it->second != 0;
    return not_found("config: no " + std::string(key));
  }
  Result<std::string> get_string(std::string_view key) const override {
    if (key == "model_type") return model_type;
    return not_found("config: no " + std::string(key));
  }
  Result<RopeParameters> rope() const override { return rope_parameters; }
};

/// Tensors in memory, filled with small numbers that depend on the name and the place.
class MapWeights : public WeightSource {
 public:
  void add(const std::string& name, std::vector<int64_t> dims) {
    auto t = ir::Tensor::allocate(DType::kFloat32, std::move(dims));
    const auto seed = static_cast<double>(std::hash<std::string>()(name) % 997);
    for (int64_t i = 0; i < t->elements(); ++i) {
      t->mutable_data_as<float>()[i] =
          static_cast<float>(0.4 * std::sin(seed + 1.7 * static_cast<double>(i)));
    }
    tensors_[name] = ir::Constant::from_tensor(*t);
  }
  void erase(const std::string& name) { tensors_.erase(name); }

  Result<ir::ConstantPtr> find(const std::string& name) const override {
    auto it = tensors_.find(name);
    return it == tensors_.end() ? ir::ConstantPtr() : it->second;
  }
  std::vector<std::string> names() const override {
    std::vector<std::string> out;
    for (const auto& [name, tensor] : tensors_) out.push_back(name);
    return out;
  }

 private:
  std::map<std::string, ir::ConstantPtr> tensors_;
};

/// Config and weights of a two-layer decoder of the Llama kind: hidden 8, 2 heads on 1 key-value head, 12
/// tokens.
inline MapConfig tiny_config(const std::string& model_type) {
  MapConfig c;
  c.model_type = model_type;
  c.numbers = {{"vocab_size", 12},
               {"hidden_size", 8},
               {"intermediate_size", 10},
               {"num_hidden_layers", 2},
               {"num_attention_heads", 2},
               {"num_key_value_heads", 1},
               {"max_position_embeddings", 32}};
  return c;
}

inline MapWeights tiny_weights() {
  MapWeights w;
  w.add("model.embed_tokens.weight", {12, 8});
  w.add("model.norm.weight", {8});
  w.add("lm_head.weight", {12, 8});
  for (const char* layer : {"model.layers.0.", "model.layers.1."}) {
    const std::string p = layer;
    w.add(p + "input_layernorm.weight", {8});
    w.add(p + "post_attention_layernorm.weight", {8});
    w.add(p + "self_attn.q_proj.weight", {8, 8});
    w.add(p + "self_attn.k_proj.weight", {4, 8});
    w.add(p + "self_attn.v_proj.weight", {4, 8});
    w.add(p + "self_attn.o_proj.weight", {8, 8});
    w.add(p + "mlp.gate_proj.weight", {10, 8});
    w.add(p + "mlp.up_proj.weight", {10, 8});
    w.add(p + "mlp.down_proj.weight", {8, 10});
  }
  return w;
}

/// Logits of the last token when the text 1, 5, 2, 7, 3 is fed in pieces of the given sizes, on the reference
/// kernels.
inline Result<std::vector<float>> last_logits(const ConfigView& config, const WeightSource& weights,
                                              CacheForm form, const std::vector<int64_t>& pieces) {
  constexpr int64_t kCapacity = 7;
  const std::vector<int64_t> text = {1, 5, 2, 7, 3};
  DECANT_ASSIGN(const std::unique_ptr<ir::Graph> graph, capture(config, weights, {.cache = form}));
  auto row = [](std::vector<int64_t> v) {
    return ir::Tensor::vector(v).reshaped({1, static_cast<int64_t>(v.size())});
  };
  std::vector<ir::Tensor> caches;
  for (size_t i = 0; form != CacheForm::kNone && i < 4; ++i) {
    DECANT_ASSIGN(ir::Tensor t, ir::Tensor::allocate(DType::kFloat32,
                                                     {1, 1, form == CacheForm::kStatic ? kCapacity : 0, 4}));
    std::fill_n(t.mutable_data_as<float>(), t.elements(), 0.0f);
    caches.push_back(t);
  }
  std::vector<float> logits;
  int64_t done = 0;
  for (int64_t n : pieces) {
    std::vector<int64_t> ids(text.begin() + done, text.begin() + done + n), positions;
    for (int64_t i = 0; i < n; ++i) positions.push_back(done + i);
    std::vector<int64_t> mask(static_cast<size_t>(form == CacheForm::kStatic ? kCapacity : done + n), 1);
    for (size_t i = static_cast<size_t>(done + n); i < mask.size(); ++i) mask[i] = 0;
    std::vector<ir::Tensor> inputs = {row(ids), row(mask), row(positions)};
    if (form == CacheForm::kStatic) inputs.push_back(ir::Tensor::scalar(done));
    inputs.insert(inputs.end(), caches.begin(), caches.end());
    DECANT_ASSIGN(const std::vector<ir::Tensor> outputs, ir::evaluate_graph(*graph, inputs));
    caches.assign(outputs.begin() + 1, outputs.end());
    const float* last = outputs[0].data_as<float>() + (n - 1) * 12;
    logits.assign(last, last + 12);
    done += n;
  }
  return logits;
}

}  // namespace decant::models::testing
