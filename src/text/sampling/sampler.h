#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "text/sampling/random.h"

namespace decant::text {

struct SamplingOptions {
  std::optional<float> temperature{};  ///< none or 0: greedy
  int64_t top_k = 0;                   ///< 0: off
  float top_p = 1.0f;                  ///< in [0, 1]; 1: off
  float min_p = 0.0f;                  ///< in [0, 1]; 0: off
  float repetition_penalty = 1.0f;     ///< > 0; 1: off
  bool penalize_prompt = true;         ///< whether tokens of the prompt count as seen, as in transformers
  uint64_t seed = 0;
};

/// Chooses the next token of one sequence from its logits. Formulas and order are those of transformers 5
/// (generation/logits_process.py):
///   1. repetition penalty, once for each seen token: l < 0 ? l * penalty : l / penalty
///   2. greedy: the largest, the lowest id among equals; otherwise
///   3. temperature: l / temperature
///   4. top_k: what is below the k-th largest goes; ties with it stay
///   5. top_p: from the smallest up, what adds up to at most 1 - top_p of the probability goes; the largest
///   stays.
///      Among equal logits higher ids go first
///   6. min_p: what is less probable than min_p times the most probable goes
///   7. one draw u in [0, 1): the first id, counting up, at which the sum of probabilities passes u
/// Probabilities are computed in double. A sequence depends on its seed and logits only, not on threads or on
/// the batch it runs in. After construction nothing is allocated. Not for several threads at once.
class Sampler {
 public:
  /// InvalidArgument for an option out of its range or an empty vocabulary.
  static Result<Sampler> create(const SamplingOptions& options, size_t vocabulary);

  /// Records the prompt, for the repetition penalty. Pads must not be among the ids. OutOfRange for an id
  /// beyond the vocabulary.
  Status see_prompt(std::span<const int32_t> ids);

  /// Chooses a token and records it as seen. `logits` has one value for each token of the vocabulary. Errors:
  /// a NaN or +inf among them (the id is named), or all -inf.
  Result<int32_t> next(std::span<const float> logits);

  /// Forgets what was seen and starts the generator again.
  void reset(uint64_t seed);

 private:
  Sampler(const SamplingOptions& options, size_t vocabulary);

  void see(int32_t id);
  Status load(std::span<const float> logits);
  int32_t largest() const;
  void keep_top_k();
  void keep_top_p();
  void keep_min_p();
  int32_t draw();

  SamplingOptions options_;
  Random random_;
  std::vector<float> scores_;
  std::vector<float> sorted_;
  std::vector<uint32_t> order_;
  std::vector<uint32_t> seen_;    // ids, each once
  std::vector<uint8_t> is_seen_;  // by id
};

}  // namespace decant::text
