#pragma once

#include <cmath>
#include <map>
#include <memory>
#include <string>

#include "models/architecture.h"

namespace decant::app::testing {

/// A Llama small enough for reference kernels, with weights from a formula; for unit tests.
class TinyConfig : public models::ConfigView {
 public:
  std::map<std::string, int64_t, std::less<>> ints = {{"hidden_size", 32},
                                                      {"intermediate_size", 64},
                                                      {"num_hidden_layers", 2},
                                                      {"num_attention_heads", 4},
                                                      {"num_key_value_heads", 2},
                                                      {"vocab_size", 96},
                                                      {"max_position_embeddings", 64}};
  std::string model_type = "llama";

  bool has(std::string_view key) const override {
    return key == "model_type" || key == "rms_norm_eps" || key == "tie_word_embeddings" || ints.count(key);
  }
  Result<int64_t> get_int(std::string_view key) const override {
    auto it = ints.find(key);
    return it == ints.end() ? Result<int64_t>(not_found(std::string(key))) : Result<int64_t>(it->second);
  }
  Result<double> get_double(std::string_view key) const override {
    return key == "rms_norm_eps" ? Result<double>(1e-5) : Result<double>(not_found(std::string(key)));
  }
  Result<bool> get_bool(std::string_view key) const override {
    return key == "tie_word_embeddings" ? Result<bool>(true) : Result<bool>(not_found(std::string(key)));
  }
  Result<std::string> get_string(std::string_view key) const override {
    return key == "model_type" ? Result<std::string>(model_type)
                               : Result<std::string>(not_found(std::string(key)));
  }
  Result<models::RopeParameters> rope() const override { return models::RopeParameters{}; }
};

class TinyWeights : public models::WeightSource {
 public:
  explicit TinyWeights(const TinyConfig& config) {
    auto at = [&](const char* key) { return config.ints.find(key)->second; };
    const int64_t h = at("hidden_size"), f = at("intermediate_size"), heads = at("num_attention_heads"),
                  kv = at("num_key_value_heads");
    add("model.embed_tokens.weight", {at("vocab_size"), h}, 0.5f, 0);
    add("model.norm.weight", {h}, 0.1f, 1);
    for (int64_t i = 0; i < at("num_hidden_layers"); ++i) {
      const std::string p = "model.layers." + std::to_string(i) + ".";
      add(p + "input_layernorm.weight", {h}, 0.1f, 1);
      add(p + "post_attention_layernorm.weight", {h}, 0.1f, 1);
      add(p + "self_attn.q_proj.weight", {h, h}, 0.3f, 0);
      add(p + "self_attn.k_proj.weight", {h / heads * kv, h}, 0.3f, 0);
      add(p + "self_attn.v_proj.weight", {h / heads * kv, h}, 0.3f, 0);
      add(p + "self_attn.o_proj.weight", {h, h}, 0.3f, 0);
      add(p + "mlp.gate_proj.weight", {f, h}, 0.3f, 0);
      add(p + "mlp.up_proj.weight", {f, h}, 0.3f, 0);
      add(p + "mlp.down_proj.weight", {h, f}, 0.3f, 0);
    }
  }
  Result<ir::ConstantPtr> find(const std::string& name) const override {
    auto it = tensors_.find(name);
    return it == tensors_.end() ? ir::ConstantPtr() : it->second;
  }
  std::vector<std::string> names() const override {
    std::vector<std::string> out;
    for (const auto& [name, t] : tensors_) out.push_back(name);
    return out;
  }

 private:
  void add(const std::string& name, std::vector<int64_t> dims, float scale, float shift) {
    auto t = ir::Tensor::allocate(DType::kFloat32, std::move(dims));
    uint32_t state = static_cast<uint32_t>(std::hash<std::string>()(name)) | 1u;
    for (int64_t i = 0; i < t->elements(); ++i) {
      state = state * 1664525u + 1013904223u;
      t->mutable_data_as<float>()[i] = shift + scale * (static_cast<float>(state >> 8) / 8388608.0f - 1.0f);
    }
    tensors_[name] = ir::Constant::from_tensor(*t);
  }
  std::map<std::string, ir::ConstantPtr> tensors_;
};

inline std::unique_ptr<ir::Graph> capture_tiny(models::CacheForm cache, DType dtype = DType::kFloat32) {
  const TinyConfig config;
  models::CaptureOptions options;
  options.cache = cache;
  options.dtype = dtype;
  auto graph = models::capture(config, TinyWeights(config), options);
  if (!graph.ok()) throw std::runtime_error(graph.status().to_string());
  return *std::move(graph);
}

}  // namespace decant::app::testing
