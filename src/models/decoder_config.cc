#include "models/decoder_config.h"

#include <string>

namespace decant::models {
namespace {

/// Larger sizes are refused, so that products of two of them stay far from 64 bits.
constexpr int64_t kMaxSize = int64_t{1} << 30;
constexpr int64_t kMaxLayers = 100000;

Status read_size(const ConfigView& config, const char* key, int64_t& out, int64_t max = kMaxSize) {
  DECANT_ASSIGN(out, config.get_int(key));
  if (out <= 0 || out > max) {
    return invalid_model(std::string("config: ") + key + " is " + std::to_string(out) + ", outside 1 to " +
                         std::to_string(max));
  }
  return ok_status();
}

}  // namespace

Result<DecoderConfig> DecoderConfig::read(const ConfigView& config) {
  DecoderConfig c;
  DECANT_RETURN_IF_ERROR(read_size(config, "vocab_size", c.vocabulary));
  DECANT_RETURN_IF_ERROR(read_size(config, "hidden_size", c.hidden));
  DECANT_RETURN_IF_ERROR(read_size(config, "intermediate_size", c.intermediate));
  DECANT_RETURN_IF_ERROR(read_size(config, "num_hidden_layers", c.layers, kMaxLayers));
  DECANT_RETURN_IF_ERROR(read_size(config, "num_attention_heads", c.heads));
  c.kv_heads = c.heads;
  if (config.has("num_key_value_heads")) {
    DECANT_RETURN_IF_ERROR(read_size(config, "num_key_value_heads", c.kv_heads));
  }
  c.head_dim = c.hidden / c.heads;
  if (config.has("head_dim")) {
    DECANT_RETURN_IF_ERROR(read_size(config, "head_dim", c.head_dim));
  }
  if (c.heads % c.kv_heads != 0) {
    return invalid_model("config: " + std::to_string(c.heads) + " attention heads cannot share " +
                         std::to_string(c.kv_heads) + " key-value heads evenly");
  }
  if (c.head_dim <= 0) return invalid_model("config: more attention heads than hidden_size");
  DECANT_RETURN_IF_ERROR(read_size(config, "max_position_embeddings", c.max_positions, INT64_MAX));
  DECANT_ASSIGN(c.epsilon, config.get_double("rms_norm_eps", 1e-6));
  DECANT_ASSIGN(c.tied, config.get_bool("tie_word_embeddings", false));
  DECANT_ASSIGN(const std::string activation, config.get_string("hidden_act", "silu"));
  DECANT_ASSIGN(c.activation, parse_activation(activation));
  DECANT_ASSIGN(c.rope, config.rope());
  return c;
}

}  // namespace decant::models
