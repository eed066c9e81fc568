#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.h"
#include "base/thread_pool.h"
#include "kernels/kernel_table.h"
#include "kernels/kernels.h"

namespace decant::kernels {

/// A region costs about a microsecond: work below some 20 of them stays with the caller.
inline constexpr double kInlineBytes = 128 * 1024;

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// f(worker, begin, end) over [0, n) items of `bytes_each` moved (or that many times what one byte costs), in
/// parts of at least `step` items that start at multiples of it.
template <typename F>
void for_range(const Context& ctx, int64_t n, double bytes_each, int64_t step, F&& f) {
  if (n <= 0) return;
  const double bytes = bytes_each * static_cast<double>(n);
  const int64_t most = std::min<int64_t>(4 * ctx.pool->size(), ceil_div(n, step));
  const int64_t chunks = std::min<int64_t>(most, static_cast<int64_t>(bytes / (kInlineBytes / 4)));
  if (ctx.pool->size() == 1 || chunks < 2 || bytes < kInlineBytes) {
    f(0, int64_t{0}, n);
    return;
  }
  const int64_t steps = ceil_div(n, step);
  ctx.pool->parallel_for(chunks, [&](int worker, int64_t begin, int64_t end) {
    const int64_t from = steps * begin / chunks * step, to = std::min(n, steps * end / chunks * step);
    if (from < to) f(worker, from, to);
  });
}

inline ElementType element_type(DType dtype) {
  return dtype == DType::kFloat16 ? kElementF16 : dtype == DType::kBFloat16 ? kElementBf16 : kElementF32;
}

inline const void* element_at(const void* base, DType dtype, int64_t index) {
  return static_cast<const std::byte*>(base) + index * static_cast<int64_t>(size_of(dtype));
}

/// Hands out cache-line aligned pieces of a caller's scratch.
class Scratch {
 public:
  explicit Scratch(std::span<std::byte> bytes) : next_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  /// Null when the rest is too small. Each piece may take up to 64 bytes more.
  template <typename T>
  T* take(int64_t count) {
    const auto address = reinterpret_cast<uintptr_t>(next_);
    std::byte* const start = next_ + (64 - address % 64) % 64;
    const int64_t bytes = count * static_cast<int64_t>(sizeof(T));
    if (start > end_ || end_ - start < bytes) return nullptr;
    next_ = start + bytes;
    return reinterpret_cast<T*>(start);
  }

 private:
  std::byte* next_;
  std::byte* end_;
};

}  // namespace decant::kernels
