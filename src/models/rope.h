#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "models/builder.h"
#include "models/config.h"

namespace decant::models {

/// Angle tables [batch, sequence, head_dim / 2] in the builder's dtype, as ONNX RotaryEmbedding takes them.
struct Rotary {
  ir::Value* cos = nullptr;
  ir::Value* sin = nullptr;
};

/// The tables at `position_ids` (i64 [batch, sequence]), computed in float32 whatever the model's dtype.
/// Frequencies follow Transformers 5 (modeling_rope_utils.py), in float32 and in its order of operations:
///   default  1 / theta^(2i / d)
///   linear   default / factor
///   dynamic  default with theta * (factor * n / max - (factor - 1))^(d / (d - 2)), n = max(largest position
///   + 1, max):
///            the base follows the positions of the run, so it is computed in the graph
///   llama3   long wavelengths / factor, short ones kept, the ones between interpolated
///   yarn     blend of default and default / factor by the number of turns; tables * attention factor
/// kUnsupported for other types and for partial rotation; kInvalidModel for impossible values.
Result<Rotary> rotary(Builder& b, ir::Value* position_ids, const RopeParameters& rope, int64_t head_dim,
                      int64_t max_position_embeddings);

/// 1 / wavelength factors of the types that do not depend on the run (for dynamic: those up to `max`), and
/// the factor on cos and sin.
struct RotaryFrequencies {
  std::vector<float> inverse;  ///< head_dim / 2
  float attention_factor = 1.0f;
};
Result<RotaryFrequencies> rotary_frequencies(const RopeParameters& rope, int64_t head_dim,
                                             int64_t max_position_embeddings);

}  // namespace decant::models
