#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace decant {

/// Sizes read from files: every sum and product is checked, none wraps.
inline std::optional<uint64_t> checked_mul(uint64_t a, uint64_t b) {
  uint64_t r = 0;
  if (__builtin_mul_overflow(a, b, &r)) return std::nullopt;
  return r;
}
inline std::optional<uint64_t> checked_add(uint64_t a, uint64_t b) {
  uint64_t r = 0;
  if (__builtin_add_overflow(a, b, &r)) return std::nullopt;
  return r;
}

/// Tensors above this many elements are refused wherever they are declared (2^48, as ONNX Runtime's own
/// limits).
inline constexpr uint64_t kMaxElements = uint64_t{1} << 48;

/// Product of the dims; nullopt when one is negative or the product passes kMaxElements.
inline std::optional<uint64_t> checked_elements(std::span<const int64_t> dims) {
  uint64_t n = 1;
  for (int64_t d : dims) {
    if (d < 0) return std::nullopt;
    const auto product = checked_mul(n, static_cast<uint64_t>(d));
    if (!product || *product > kMaxElements) return std::nullopt;
    n = *product;
  }
  return n;
}

}  // namespace decant
