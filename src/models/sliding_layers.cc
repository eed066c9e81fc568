#include "models/sliding_layers.h"

namespace decant::models {

Result<std::optional<int64_t>> window_of_layers(const ConfigView& config, int64_t layers) {
  DECANT_ASSIGN(const bool used, config.get_bool("use_sliding_window", false));
  if (!used || !config.has("sliding_window")) return std::optional<int64_t>();
  constexpr int64_t kDefaultFullLayers = 28;
  int64_t full = kDefaultFullLayers;
  if (config.has("max_window_layers")) {
    DECANT_ASSIGN(full, config.get_int("max_window_layers"));
  }
  if (full >= layers) return std::optional<int64_t>();
  if (full > 0)
    return unsupported(
        "config: sliding_window for the layers from max_window_layers on, and none before them");
  DECANT_ASSIGN(const int64_t window, config.get_int("sliding_window"));
  return std::optional<int64_t>(window);
}

}  // namespace decant::models
