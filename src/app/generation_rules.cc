#include "app/generation_rules.h"

#include <algorithm>
#include <limits>

namespace decant::app {

GenerationRules::GenerationRules(const huggingface::GenerationConfig& config)
    : start_(config.decoder_start_token_id ? config.decoder_start_token_id : config.bos_token_id),
      suppressed_(config.suppress_tokens),
      suppressed_first_(config.begin_suppress_tokens) {
  if (config.forced_bos_token_id) forced_[1] = *config.forced_bos_token_id;
  for (const auto& [position, id] : config.forced_decoder_ids) forced_[position] = id;
}

Result<std::vector<int32_t>> GenerationRules::decoder_start() const {
  if (!start_) {
    return not_found(
        "neither generation_config.json nor config.json has a decoder_start_token_id: the decoder has "
        "nothing to start "
        "with");
  }
  std::vector<int32_t> ids = {static_cast<int32_t>(*start_)};
  for (auto it = forced_.find(1); it != forced_.end(); it = forced_.find(static_cast<int64_t>(ids.size())))
    ids.push_back(static_cast<int32_t>(it->second));
  return ids;
}

void GenerationRules::apply(int64_t position, bool first, std::span<float> logits) const {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  const auto known = [&](int64_t id) { return id >= 0 && static_cast<size_t>(id) < logits.size(); };
  if (auto it = forced_.find(position); it != forced_.end() && known(it->second)) {
    std::fill(logits.begin(), logits.end(), kNever);
    logits[static_cast<size_t>(it->second)] = 0;
    return;
  }
  for (int64_t id : suppressed_) {
    if (known(id)) logits[static_cast<size_t>(id)] = kNever;
  }
  for (int64_t id : suppressed_first_) {
    if (first && known(id)) logits[static_cast<size_t>(id)] = kNever;
  }
}

}  // namespace decant::app
