#pragma once

#include <cstdint>
#include <optional>

#include "base/status.h"
#include "models/config.h"

namespace decant::models {

/// The window of all layers of a Qwen config: `sliding_window` when `use_sliding_window` is set and the
/// layers from `max_window_layers` on are all of them. kUnsupported when only some layers have one.
Result<std::optional<int64_t>> window_of_layers(const ConfigView& config, int64_t layers);

}  // namespace decant::models
