#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/status.h"
#include "formats/huggingface/generation_config.h"

namespace decant::app {

/// Which tokens generation_config.json forces and forbids, in transformers' meaning: positions are counted in
/// the decoder's sequence, the start token being position 0.
class GenerationRules {
 public:
  explicit GenerationRules(const huggingface::GenerationConfig& config);

  /// What a decoder of an encoder-decoder model starts with: decoder_start_token_id (else bos_token_id) and
  /// the ids forced right after it. kNotFound when the configuration has no start token.
  Result<std::vector<int32_t>> decoder_start() const;

  bool empty() const { return forced_.empty() && suppressed_.empty() && suppressed_first_.empty(); }

  /// Sets what may not come at `position` to -infinity; `first`: it is the first token that is generated. Ids
  /// beyond the vocabulary are ignored.
  void apply(int64_t position, bool first, std::span<float> logits) const;

 private:
  std::optional<int64_t> start_;
  std::map<int64_t, int64_t> forced_;
  std::vector<int64_t> suppressed_, suppressed_first_;
};

}  // namespace decant::app
