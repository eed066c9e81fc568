#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "ir/tensor.h"

namespace decant::ir {

using Dims = std::vector<int64_t>;

/// Row-major strides in elements.
Dims strides_of(std::span<const int64_t> dims);
/// Strides of a tensor of `dims` read as if broadcast to `out`: 0 along repeated dims. Precondition: it
/// broadcasts.
Dims broadcast_strides(std::span<const int64_t> dims, std::span<const int64_t> out);
/// NumPy's broadcasting of two shapes; nothing when they do not fit.
std::optional<Dims> broadcast_dims(std::span<const int64_t> a, std::span<const int64_t> b);
/// Product of dims [begin, end). Precondition: the dims belong to an existing tensor, so the product cannot
/// overflow unless a dim is zero, in which case it is cut at kMaxElements.
int64_t product(std::span<const int64_t> dims, size_t begin, size_t end);

/// Visits every index of `dims` in row-major order: f(i, offsets) with the running number and one offset per
/// stride list. Nothing is visited when a dim is 0; a rank-0 shape has one index.
template <size_t N, typename F>
void for_each_index(std::span<const int64_t> dims, const std::array<Dims, N>& strides, F&& f) {
  for (int64_t d : dims) {
    if (d == 0) return;
  }
  Dims index(dims.size(), 0);
  std::array<int64_t, N> offsets{};
  for (int64_t i = 0;; ++i) {
    f(i, offsets);
    size_t axis = dims.size();
    while (axis > 0) {
      --axis;
      for (size_t n = 0; n < N; ++n) offsets[n] += strides[n][axis];
      if (++index[axis] < dims[axis]) break;
      index[axis] = 0;
      for (size_t n = 0; n < N; ++n) offsets[n] -= strides[n][axis] * dims[axis];
      if (axis == 0) return;
    }
    if (dims.empty()) return;
  }
}

/// A new tensor of `dims` whose element at an index is source[base + sum(index * stride)]. Precondition: all
/// of these lie inside the source.
Result<Tensor> strided_copy(const Tensor& source, const Dims& dims, const Dims& strides, int64_t base);
/// Writes all elements of `source` to target[base + sum(index * stride)]. Precondition: same dtype; all
/// inside.
void strided_write(Tensor& target, const Dims& strides, int64_t base, const Tensor& source);
/// Copies `count` elements between tensors of one dtype. Precondition: both ranges are inside.
void copy_elements(Tensor& target, int64_t to, const Tensor& source, int64_t from, int64_t count);
/// Sets `count` elements to the first of `value` (same dtype), or to zero (an empty string) when it is null.
void fill_elements(Tensor& target, int64_t to, const Tensor* value, int64_t count);
/// A copy with its own memory.
Result<Tensor> clone(const Tensor& source);

}  // namespace decant::ir
