#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace decant::app {

/// What a tensor of a GGUF file is in the checkpoint that it was made from.
struct GgufName {
  std::string checkpoint;  ///< "model.layers.0.self_attn.q_proj.weight"
  /// Rows were permuted when the file was made: whose head count they follow.
  enum class Rows { kPlain, kQueryHeads, kKeyHeads } rows = Rows::kPlain;
};

/// The one table between GGUF's tensor names ("blk.0.attn_q.weight") and checkpoints' names, shared by all
/// architectures. Nothing for names it lacks. Rows are permuted in files of `architecture` llama only.
std::optional<GgufName> checkpoint_name(std::string_view gguf_name, std::string_view architecture);

/// Tensors that hold settings and not weights; their content is in the config already.
bool is_gguf_setting(std::string_view gguf_name);

}  // namespace decant::app
