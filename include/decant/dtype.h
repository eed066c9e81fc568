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
};

/// "float32", "int64", "bool", ...: the spelling of PyTorch and of export.json.
DECANT_EXPORT std::string_view to_string(DType dtype);
DECANT_EXPORT std::optional<DType> dtype_from_string(std::string_view name);

/// Bytes of one element; 0 for kUndefined.
DECANT_EXPORT size_t size_of(DType dtype);

constexpr bool is_float(DType t) {
  return t == DType::kFloat32 || t == DType::kFloat64 || t == DType::kFloat16 || t == DType::kBFloat16;
}
constexpr bool is_integer(DType t) { return t >= DType::kInt8 && t <= DType::kUInt64; }
constexpr bool is_signed_integer(DType t) { return t >= DType::kInt8 && t <= DType::kInt64; }

}  // namespace decant
