#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "decant/export.h"

namespace decant {

/// Element types, with ONNX's meaning. Sub-byte types hold the first element in the low bits of each byte.
enum class DType : uint8_t {
  kUndefined = 0,
  kFloat32,
  kFloat64,
  kFloat16,
  kBFloat16,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUInt8,
  kUInt16,
  kUInt32,
  kUInt64,
  kBool,  ///< one byte, 0 or 1
  kInt4,
  kUInt4,
  kInt2,
  kUInt2,
  kFloat8E4M3FN,
  kFloat8E4M3FNUZ,
  kFloat8E5M2,
  kFloat8E5M2FNUZ,
  kFloat8E8M0,
  kFloat4E2M1,
  kComplex64,
  kComplex128,
  kString,  ///< std::string objects, not bytes
};

/// "float32", "int64", "bool", ...: the spelling of PyTorch and of export.json.
DECANT_EXPORT std::string_view to_string(DType dtype);
DECANT_EXPORT std::optional<DType> dtype_from_string(std::string_view name);

/// Bits of one element; 0 for kUndefined and kString.
DECANT_EXPORT int bits_of(DType dtype);
/// Bytes of one element; 0 where it takes no whole number of bytes (see is_packed), for kUndefined and
/// kString.
DECANT_EXPORT size_t size_of(DType dtype);
/// Bytes that `elements` elements take, the last byte filled up; 0 for kString. Nothing when it passes 64
/// bits.
DECANT_EXPORT std::optional<uint64_t> bytes_of(DType dtype, uint64_t elements);

constexpr bool is_float(DType t) {
  return t == DType::kFloat32 || t == DType::kFloat64 || t == DType::kFloat16 || t == DType::kBFloat16;
}
constexpr bool is_integer(DType t) { return t >= DType::kInt8 && t <= DType::kUInt64; }
constexpr bool is_signed_integer(DType t) { return t >= DType::kInt8 && t <= DType::kInt64; }
/// Integers and floats of fewer than 16 bits that only conversions and movement know.
constexpr bool is_small_integer(DType t) { return t >= DType::kInt4 && t <= DType::kUInt2; }
constexpr bool is_small_float(DType t) { return t >= DType::kFloat8E4M3FN && t <= DType::kFloat4E2M1; }
/// Several elements share a byte.
constexpr bool is_packed(DType t) { return is_small_integer(t) || t == DType::kFloat4E2M1; }
/// Types that kernels on bytes can move, element by element.
constexpr bool is_bytewise(DType t) { return t != DType::kUndefined && t != DType::kString && !is_packed(t); }

}  // namespace decant
