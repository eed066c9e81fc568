#include "ir/ops/window.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

namespace decant::ir {
namespace {

/// Strides, dilations, kernels and pads stay below this, so that products of two fit.
constexpr int64_t kMaxSize = int64_t{1} << 30;

Result<Dims> read_sizes(const Node& node, std::string_view key, size_t count, int64_t fallback,
                        int64_t least) {
  const auto* list = node.attribute<std::vector<int64_t>>(key);
  if (list == nullptr || list->empty()) return Dims(count, fallback);
  if (list->size() != count) {
    return node_error(node, fmt::format("'{}' has {} entries, needed are {}", key, list->size(), count));
  }
  for (int64_t v : *list) {
    if (v < least || v > kMaxSize) return node_error(node, fmt::format("'{}' holds {}", key, v));
  }
  return *list;
}

}  // namespace

std::optional<Dims> kernel_shape(const Node& node) {
  const auto* list = node.attribute<std::vector<int64_t>>("kernel_shape");
  return list == nullptr || list->empty() ? std::nullopt : std::optional(*list);
}

Result<Dims> kernel_of_weights(const Node& node, std::span<const int64_t> weight_dims) {
  if (weight_dims.size() < 3) return node_error(node, "the weights need at least one spatial dim");
  Dims kernel(weight_dims.begin() + 2, weight_dims.end());
  if (const auto given = kernel_shape(node); given && *given != kernel) {
    return node_error(node, "'kernel_shape' does not fit the weights");
  }
  return kernel;
}

Result<Window> read_window(const Node& node, Dims kernel) {
  Window w;
  const size_t rank = kernel.size();
  for (int64_t k : kernel) {
    if (k < 1 || k > kMaxSize) return node_error(node, fmt::format("a kernel of {}", k));
  }
  w.kernel = std::move(kernel);
  DECANT_ASSIGN(w.strides, read_sizes(node, "strides", rank, 1, 1));
  DECANT_ASSIGN(w.dilations, read_sizes(node, "dilations", rank, 1, 1));
  const std::string mode = node.string_attribute("auto_pad", "NOTSET");
  w.begin = w.end = Dims(rank, 0);
  if (mode == "SAME_UPPER") {
    w.auto_pad = Window::AutoPad::kSameUpper;
  } else if (mode == "SAME_LOWER") {
    w.auto_pad = Window::AutoPad::kSameLower;
  } else if (mode == "VALID") {
    w.auto_pad = Window::AutoPad::kValid;
  } else if (mode == "NOTSET" || mode.empty()) {
    DECANT_ASSIGN(const Dims pads, read_sizes(node, "pads", 2 * rank, 0, 0));
    w.begin.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(rank));
    w.end.assign(pads.begin() + static_cast<std::ptrdiff_t>(rank), pads.end());
  } else {
    return node_error(node, fmt::format("auto_pad '{}'", mode));
  }
  w.ceil = node.int_attribute("ceil_mode", 0) != 0;
  return w;
}

Dim window_outputs(const Graph* graph, const Window& w, size_t axis, const Dim& input) {
  const int64_t stride = w.strides[axis];
  const auto divided = [&](const Dim& d) { return stride == 1 ? d : floor_div(d, Dim(stride)); };
  if (w.auto_pad == Window::AutoPad::kSameUpper || w.auto_pad == Window::AutoPad::kSameLower) {
    return divided(input + Dim(stride - 1));
  }
  const Dim room = input + Dim(w.begin[axis] + w.end[axis] - w.extent(axis));
  if (!w.ceil || w.auto_pad == Window::AutoPad::kValid) return divided(room) + Dim(1);
  const Dim all = divided(room + Dim(stride - 1)) + Dim(1);
  const Dim started = divided(input + Dim(w.begin[axis] - 1)) + Dim(1);
  return graph == nullptr ? min(all, started) : smaller(*graph, all, started);
}

Result<Dims> place(const Node& node, Window& w, std::span<const int64_t> spatial) {
  if (spatial.size() != w.rank()) {
    return node_error(node, fmt::format("{} spatial dims for a kernel of {}", spatial.size(), w.rank()));
  }
  Dims out;
  for (size_t a = 0; a < w.rank(); ++a) {
    const auto count = window_outputs(nullptr, w, a, Dim(spatial[a])).as_constant();
    if (!count || *count < 0) {
      return node_error(node,
                        fmt::format("a window of {} does not fit {} positions", w.extent(a), spatial[a]));
    }
    out.push_back(*count);
    if (w.auto_pad == Window::AutoPad::kSameUpper || w.auto_pad == Window::AutoPad::kSameLower) {
      const int64_t total = std::max<int64_t>(0, (*count - 1) * w.strides[a] + w.extent(a) - spatial[a]);
      w.begin[a] = w.auto_pad == Window::AutoPad::kSameUpper ? total / 2 : total - total / 2;
      w.end[a] = total - w.begin[a];
    }
  }
  return out;
}

bool next_index(Dims& index, std::span<const int64_t> dims) {
  for (size_t a = dims.size(); a-- > 0;) {
    if (++index[a] < dims[a]) return true;
    index[a] = 0;
  }
  return false;
}

}  // namespace decant::ir
