#pragma once

#include <array>
#include <cstdint>

#include "runtime/kernel.h"

namespace decant::runtime {

inline constexpr int kMaxRank = 8;

/// Walks an output's rows (all axes but the last) with the matching offsets of up to three broadcast
/// operands. Axes of size one have stride zero.
template <int N>
struct BroadcastWalk {
  std::array<std::array<int64_t, kMaxRank>, N> strides{};
  std::array<int64_t, kMaxRank> dims{};
  int rank = 0;
  int64_t rows = 1, columns = 1;

  BroadcastWalk(const Arg& out, const std::array<const Arg*, N>& operands) : rank(out.rank) {
    for (int axis = 0; axis < rank; ++axis) dims[static_cast<size_t>(axis)] = out.dims[axis];
    for (size_t n = 0; n < N; ++n) {
      int64_t stride = 1;
      for (int i = 0; i < operands[n]->rank; ++i) {
        const int64_t dim = operands[n]->dims[operands[n]->rank - 1 - i];
        strides[n][static_cast<size_t>(rank - 1 - i)] = dim == 1 ? 0 : stride;
        stride *= dim;
      }
    }
    for (int axis = 0; axis + 1 < rank; ++axis) rows *= dims[static_cast<size_t>(axis)];
    if (rank > 0) columns = dims[static_cast<size_t>(rank - 1)];
  }

  int64_t column_stride(size_t n) const { return rank > 0 ? strides[n][static_cast<size_t>(rank - 1)] : 0; }

  /// Calls f(row, offsets) for rows [begin, end).
  template <typename F>
  void for_rows(int64_t begin, int64_t end, const F& f) const {
    std::array<int64_t, kMaxRank> at{};
    std::array<int64_t, N> offsets{};
    int64_t rest = begin;
    for (int axis = rank - 2; axis >= 0; --axis) {
      const auto a = static_cast<size_t>(axis);
      at[a] = dims[a] ? rest % dims[a] : 0;
      rest = dims[a] ? rest / dims[a] : 0;
      for (size_t n = 0; n < N; ++n) offsets[n] += at[a] * strides[n][a];
    }
    for (int64_t row = begin; row < end; ++row) {
      f(row, offsets);
      for (int axis = rank - 2; axis >= 0; --axis) {
        const auto a = static_cast<size_t>(axis);
        for (size_t n = 0; n < N; ++n) offsets[n] += strides[n][a];
        if (++at[a] < dims[a]) break;
        at[a] = 0;
        for (size_t n = 0; n < N; ++n) offsets[n] -= dims[a] * strides[n][a];
      }
    }
  }
};

/// Whether every operand broadcasts to the output and ranks stay within kMaxRank.
template <size_t N>
bool broadcasts(const Arg& out, const std::array<const Arg*, N>& operands) {
  if (out.rank > kMaxRank) return false;
  for (const Arg* x : operands) {
    if (x->rank > out.rank) return false;
    for (int i = 0; i < x->rank; ++i) {
      const int64_t dim = x->dims[x->rank - 1 - i];
      if (dim != 1 && dim != out.dims[out.rank - 1 - i]) return false;
    }
  }
  return true;
}

}  // namespace decant::runtime
