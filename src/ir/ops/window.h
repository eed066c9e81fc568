#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "ir/ops/common.h"

namespace decant::ir {

/// How convolutions and pools slide over the spatial axes: the attributes that they share, one entry for each
/// axis.
struct Window {
  enum class AutoPad { kNotSet, kSameUpper, kSameLower, kValid };
  Dims kernel, strides, dilations;
  Dims begin, end;  ///< padding; of the SAME modes known after `place`
  AutoPad auto_pad = AutoPad::kNotSet;
  bool ceil = false;  ///< outputs of partial windows count, unless they start in the padding at the end

  size_t rank() const { return kernel.size(); }
  /// Input positions from the first to the last tap.
  int64_t extent(size_t axis) const { return (kernel[axis] - 1) * dilations[axis] + 1; }
};

/// Reads strides, dilations, pads, auto_pad and ceil_mode. Sizes are bounded so that extents cannot overflow.
/// Fails on lists of the wrong length, negative pads and sizes below 1.
Result<Window> read_window(const Node& node, Dims kernel);
/// The kernel_shape attribute, or nothing.
std::optional<Dims> kernel_shape(const Node& node);
/// The kernel's sizes from dims 2 and up of the weights; fails when the attribute contradicts them.
Result<Dims> kernel_of_weights(const Node& node, std::span<const int64_t> weight_dims);

/// Output positions along an axis of `input` positions.
Dim window_outputs(const Graph* graph, const Window& window, size_t axis, const Dim& input);
/// The same for all spatial dims of a tensor; fills in the padding of the SAME modes. Fails when no window
/// fits.
Result<Dims> place(const Node& node, Window& window, std::span<const int64_t> spatial);

/// Visits the taps of one window: f(input_offset, tap) with the offset within the spatial dims and the tap's
/// number in the kernel. Taps in the padding are left out.
template <typename F>
void for_each_tap(const Window& window, std::span<const int64_t> spatial, std::span<const int64_t> output,
                  F&& f) {
  const size_t rank = window.rank();
  Dims start(rank), first(rank), last(rank);
  for (size_t a = 0; a < rank; ++a) {
    const int64_t step = window.dilations[a];
    start[a] = output[a] * window.strides[a] - window.begin[a];
    first[a] = start[a] >= 0 ? 0 : (step - 1 - start[a]) / step;
    last[a] = start[a] >= spatial[a] ? 0 : (spatial[a] - 1 - start[a]) / step + 1;
    last[a] = std::min(last[a], window.kernel[a]);
    if (first[a] >= last[a]) return;
  }
  Dims tap = first;
  while (true) {
    int64_t offset = 0;
    uint64_t number = 0;  // of weights in memory; kernels of pools may be larger than any number
    for (size_t a = 0; a < rank; ++a) {
      offset = offset * spatial[a] + start[a] + tap[a] * window.dilations[a];
      number = number * static_cast<uint64_t>(window.kernel[a]) + static_cast<uint64_t>(tap[a]);
    }
    f(offset, static_cast<int64_t>(number));
    size_t a = rank;
    while (a > 0 && ++tap[a - 1] == last[a - 1]) {
      --a;
      tap[a] = first[a];
    }
    if (a == 0) return;
  }
}

/// The next index of `dims` in row-major order; false after the last.
bool next_index(Dims& index, std::span<const int64_t> dims);

}  // namespace decant::ir
