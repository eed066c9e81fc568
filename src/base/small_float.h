#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace decant {

/// Formats of 8 and 4 bits as storage types, by the tables of the ONNX specification ("Float stored in 8
/// bits", "Float stored in 4 bits") and OCP's OFP8 and MX documents.

/// The value of a bit pattern. Precondition: is_small_float(dtype).
float small_to_float(DType dtype, uint8_t bits);

enum class ScaleRounding : uint8_t { kUp, kDown, kNearest };

/// The nearest value, ties to even. What lies outside the format's range (infinities too) becomes the largest
/// value of its sign when `saturate`, else infinity where the format has one, else NaN. float4e2m1 always
/// saturates (it has no NaN: NaN becomes the largest negative zero pattern, as ml_dtypes does). float8e8m0
/// holds powers of two: the sign is dropped and `rounding` picks the power.
uint8_t float_to_small(DType dtype, float value, bool saturate = true,
                       ScaleRounding rounding = ScaleRounding::kUp);

/// Element i of packed storage as raw bits, and its replacement. `bits` is 2 or 4.
inline uint8_t packed_get(const uint8_t* data, int bits, int64_t i) {
  const int64_t per_byte = 8 / bits;
  return static_cast<uint8_t>((data[i / per_byte] >> (bits * static_cast<int>(i % per_byte))) &
                              ((1 << bits) - 1));
}
inline void packed_set(uint8_t* data, int bits, int64_t i, uint8_t value) {
  const int64_t per_byte = 8 / bits;
  const int shift = bits * static_cast<int>(i % per_byte);
  const int mask = ((1 << bits) - 1) << shift;
  uint8_t& byte = data[i / per_byte];
  byte = static_cast<uint8_t>((byte & ~mask) | ((value << shift) & mask));
}

}  // namespace decant
