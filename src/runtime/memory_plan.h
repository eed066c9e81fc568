#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace decant::runtime {

/// A buffer wanted by the plan: alive from the step that writes it to the last that reads it, both inclusive.
struct BufferRequest {
  int first_step = 0;
  int last_step = 0;
  int64_t hint_bytes = 0;  ///< its size for typical symbol values; only guides the choice
};

/// Gives each request a slot so that requests alive at once never share one. Sizes are not known yet: at run
/// time a slot is as large as the largest of its buffers. Best fit by hint, O(n · slots).
std::vector<int> assign_slots(std::span<const BufferRequest> requests, int* slot_count);

}  // namespace decant::runtime
