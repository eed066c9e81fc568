#include "app/gguf_names.h"

#include <algorithm>
#include <cctype>

namespace decant::app {
namespace {

struct Entry {
  std::string_view gguf, checkpoint;
  GgufName::Rows rows = GgufName::Rows::kPlain;
};

/// Names up to ".weight" or ".bias". Those of layers stand behind "blk.N." and "model.layers.N.".
constexpr Entry kModel[] = {
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
};
constexpr Entry kLayer[] = {
    {"attn_norm", "input_layernorm"},
    {"attn_q", "self_attn.q_proj", GgufName::Rows::kQueryHeads},
    {"attn_k", "self_attn.k_proj", GgufName::Rows::kKeyHeads},
    {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
};

template <size_t kCount>
const Entry* find(const Entry (&entries)[kCount], std::string_view name) {
  auto it =
      std::find_if(std::begin(entries), std::end(entries), [&](const Entry& e) { return e.gguf == name; });
  return it == std::end(entries) ? nullptr : it;
}

bool is_number(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

}  // namespace

std::optional<GgufName> checkpoint_name(std::string_view name, std::string_view architecture) {
  const size_t last = name.rfind('.');
  if (last == std::string_view::npos) return std::nullopt;
  const std::string_view kind = name.substr(last);
  if (kind != ".weight" && kind != ".bias") return std::nullopt;
  std::string_view stem = name.substr(0, last);
  constexpr std::string_view kBlock = "blk.";
  if (!stem.starts_with(kBlock)) {
    const Entry* entry = find(kModel, stem);
    if (!entry) return std::nullopt;
    return GgufName{std::string(entry->checkpoint) + std::string(kind), entry->rows};
  }
  stem.remove_prefix(kBlock.size());
  const size_t dot = stem.find('.');
  if (dot == std::string_view::npos || !is_number(stem.substr(0, dot))) return std::nullopt;
  const Entry* entry = find(kLayer, stem.substr(dot + 1));
  if (!entry) return std::nullopt;
  return GgufName{"model.layers." + std::string(stem.substr(0, dot)) + "." + std::string(entry->checkpoint) +
                      std::string(kind),
                  architecture == "llama" ? entry->rows : GgufName::Rows::kPlain};
}

bool is_gguf_setting(std::string_view name) {
  return name == "rope_freqs.weight" || name.ends_with(".attn_rot_embd.weight");
}

}  // namespace decant::app
