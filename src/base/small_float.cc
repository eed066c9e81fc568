#include "base/small_float.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace decant {
namespace {

struct Format {
  int mantissa_bits;
  int bias;
  float max;
  int sign_bit;
  uint8_t nan;       ///< of positive sign; 0 where the format has none
  uint8_t infinity;  ///< of positive sign; 0 where the format has none
  bool unsigned_zero;
};

Format format_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat8E4M3FN:
      return {3, 7, 448, 0x80, 0x7f, 0, false};
    case DType::kFloat8E4M3FNUZ:
      return {3, 8, 240, 0x80, 0x80, 0, true};
    case DType::kFloat8E5M2:
      return {2, 15, 57344, 0x80, 0x7e, 0x7c, false};
    case DType::kFloat8E5M2FNUZ:
      return {2, 16, 57344, 0x80, 0x80, 0, true};
    default:
      return {1, 1, 6, 0x8, 0, 0, false};  // float4e2m1
  }
}

uint8_t to_e8m0(float value, bool saturate, ScaleRounding rounding) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t exponent = (bits >> 23) & 0xff, fraction = bits & 0x7fffff;
  if (exponent == 0xff) return 0xff;
  if (exponent == 0) {  // below 2^-126: the format's smallest is 2^-127
    const uint32_t limit = rounding == ScaleRounding::kUp ? 0x400001 : 0x600000;
    return rounding != ScaleRounding::kDown && fraction >= limit ? 1 : 0;
  }
  bool up = false;
  if (rounding == ScaleRounding::kUp) up = fraction != 0;
  if (rounding == ScaleRounding::kNearest) {
    up = fraction >= 0x400000;
  }
  if (saturate && exponent == 0xfe) up = false;
  return static_cast<uint8_t>(exponent + (up ? 1 : 0));
}

}  // namespace

float small_to_float(DType dtype, uint8_t bits) {
  if (dtype == DType::kFloat8E8M0) {
    return bits == 0xff ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0f, int{bits} - 127);
  }
  const Format f = format_of(dtype);
  const bool negative = (bits & f.sign_bit) != 0;
  const int magnitude = bits & (f.sign_bit - 1);
  if (f.unsigned_zero ? bits == f.nan : f.nan != 0 && magnitude >= f.nan - (f.infinity != 0 ? 1 : 0)) {
    return std::numeric_limits<float>::quiet_NaN();
  }
  if (f.infinity != 0 && magnitude == f.infinity) {
    return negative ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::infinity();
  }
  const int exponent = magnitude >> f.mantissa_bits, mantissa = magnitude & ((1 << f.mantissa_bits) - 1);
  const int whole = exponent == 0 ? mantissa : mantissa + (1 << f.mantissa_bits);
  const float value =
      std::ldexp(static_cast<float>(whole), (exponent == 0 ? 1 : exponent) - f.bias - f.mantissa_bits);
  return negative ? -value : value;
}

uint8_t float_to_small(DType dtype, float value, bool saturate, ScaleRounding rounding) {
  if (dtype == DType::kFloat8E8M0) return to_e8m0(value, saturate, rounding);
  const Format f = format_of(dtype);
  const auto sign = static_cast<uint8_t>(std::signbit(value) ? f.sign_bit : 0);
  if (std::isnan(value)) {
    if (f.nan == 0) return static_cast<uint8_t>(f.sign_bit - sign);
    return f.unsigned_zero ? f.nan : static_cast<uint8_t>(f.nan | sign);
  }
  const float magnitude = std::fabs(value);
  float rounded = magnitude;
  const int least = 1 - f.bias;  // exponent of the smallest normal number
  if (magnitude != 0 && std::isfinite(magnitude)) {
    const int exponent = std::max(std::ilogb(magnitude), least);
    const int quantum = exponent - f.mantissa_bits;
    rounded = std::ldexp(std::nearbyint(std::ldexp(magnitude, -quantum)), quantum);
  }
  if (rounded > f.max) {
    if (!saturate && f.nan != 0) {
      if (f.infinity != 0) return static_cast<uint8_t>(f.infinity | sign);
      return f.unsigned_zero ? f.nan : static_cast<uint8_t>(f.nan | sign);
    }
    rounded = f.max;
  }
  if (rounded == 0) return f.unsigned_zero ? uint8_t{0} : sign;
  const int exponent = std::ilogb(rounded);
  if (exponent < least) {
    return static_cast<uint8_t>(sign | static_cast<int>(std::ldexp(rounded, f.mantissa_bits - least)));
  }
  const auto whole = static_cast<int>(std::ldexp(rounded, f.mantissa_bits - exponent));
  return static_cast<uint8_t>(sign | ((exponent + f.bias) << f.mantissa_bits) |
                              (whole & ((1 << f.mantissa_bits) - 1)));
}

}  // namespace decant
