#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace decant::huggingface {

/// Rotary embedding settings of a config, whichever way the file spells them: `rope_theta` beside
/// `rope_scaling {type | rope_type, ...}` (before Transformers 5), or all of it in `rope_parameters` (since
/// then). Fields without a value in the file keep what is written here; the formulas that use them belong to
/// the models.
struct RopeParameters {
  std::string type = "default";  ///< default, linear, dynamic, llama3, yarn or longrope
  double theta = 10000.0;        ///< base of the frequencies
  double factor = 1.0;  ///< how much longer than trained; required for linear, dynamic, llama3 and yarn
  double partial_rotary_factor = 1.0;  ///< share of head_dim that is rotated
  /// Trained length; absent: the value of max_position_embeddings.
  std::optional<int64_t> original_max_position_embeddings;
  double low_freq_factor = 1.0;            ///< llama3
  double high_freq_factor = 4.0;           ///< llama3
  double beta_fast = 32.0;                 ///< yarn
  double beta_slow = 1.0;                  ///< yarn
  bool truncate = true;                    ///< yarn: round the correction range to whole dims
  std::optional<double> mscale;            ///< yarn (DeepSeek)
  std::optional<double> mscale_all_dim;    ///< yarn (DeepSeek)
  std::optional<double> attention_factor;  ///< yarn, longrope; absent: from the formula
  std::vector<double> short_factor;        ///< longrope, rotary_dim / 2 values
  std::vector<double> long_factor;         ///< longrope, rotary_dim / 2 values
};

}  // namespace decant::huggingface
