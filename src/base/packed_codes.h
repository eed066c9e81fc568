#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/dtype.h"
#include "base/half.h"

namespace decant {

/// Code of `bits` (1 to 8) bits of a bit stream that begins at bit `at`; codes may straddle bytes.
inline uint32_t packed_code(const std::byte* data, uint64_t at, int bits) {
  const uint64_t byte = at / 8;
  const auto shift = static_cast<int>(at % 8);
  auto window = std::to_integer<uint32_t>(data[byte]);
  if (shift + bits > 8) window |= std::to_integer<uint32_t>(data[byte + 1]) << 8;
  return (window >> shift) & ((1u << bits) - 1);
}

/// Element `i` of float32, float16 or bfloat16 numbers at any alignment.
inline float packed_number(const std::byte* data, DType dtype, int64_t i) {
  if (dtype == DType::kFloat32) {
    float v;
    std::memcpy(&v, data + 4 * i, 4);
    return v;
  }
  uint16_t half;
  std::memcpy(&half, data + 2 * i, 2);
  return dtype == DType::kFloat16 ? f16_to_float(half) : bf16_to_float(half);
}

}  // namespace decant
