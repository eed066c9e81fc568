#include "runtime/memory_plan.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace decant::runtime {

std::vector<int> assign_slots(std::span<const BufferRequest> requests, int* slot_count) {
  struct Slot {
    int free_after;  ///< last step of the present tenant
    int64_t bytes;
  };
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return requests[a].first_step < requests[b].first_step; });

  std::vector<Slot> slots;
  std::vector<int> assigned(requests.size(), -1);
  for (size_t r : order) {
    const BufferRequest& request = requests[r];
    // The free slot that wastes least: the smallest that is large enough, else the largest (it has to grow
    // least).
    int best = -1;
    for (size_t s = 0; s < slots.size(); ++s) {
      if (slots[s].free_after >= request.first_step) continue;
      if (best < 0) {
        best = static_cast<int>(s);
        continue;
      }
      const int64_t have = slots[static_cast<size_t>(best)].bytes, candidate = slots[s].bytes;
      const bool fits = candidate >= request.hint_bytes, best_fits = have >= request.hint_bytes;
      if (fits != best_fits ? fits : (fits ? candidate < have : candidate > have)) best = static_cast<int>(s);
    }
    if (best < 0) {
      best = static_cast<int>(slots.size());
      slots.push_back({0, 0});
    }
    Slot& slot = slots[static_cast<size_t>(best)];
    slot.free_after = request.last_step;
    slot.bytes = std::max(slot.bytes, request.hint_bytes);
    assigned[r] = best;
  }
  *slot_count = static_cast<int>(slots.size());
  return assigned;
}

}  // namespace decant::runtime
