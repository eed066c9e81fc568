#include "base/dtype.h"

#include <array>

#include "base/checked.h"

namespace decant {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  int bits;
};

constexpr std::array kRows = {
    Row{DType::kUndefined, "undefined", 0},
    Row{DType::kFloat32, "float32", 32},
    Row{DType::kFloat64, "float64", 64},
    Row{DType::kFloat16, "float16", 16},
    Row{DType::kBFloat16, "bfloat16", 16},
    Row{DType::kInt8, "int8", 8},
    Row{DType::kInt16, "int16", 16},
    Row{DType::kInt32, "int32", 32},
    Row{DType::kInt64, "int64", 64},
    Row{DType::kUInt8, "uint8", 8},
    Row{DType::kUInt16, "uint16", 16},
    Row{DType::kUInt32, "uint32", 32},
    Row{DType::kUInt64, "uint64", 64},
    Row{DType::kBool, "bool", 8},
    Row{DType::kInt4, "int4", 4},
    Row{DType::kUInt4, "uint4", 4},
    Row{DType::kInt2, "int2", 2},
    Row{DType::kUInt2, "uint2", 2},
    Row{DType::kFloat8E4M3FN, "float8_e4m3fn", 8},
    Row{DType::kFloat8E4M3FNUZ, "float8_e4m3fnuz", 8},
    Row{DType::kFloat8E5M2, "float8_e5m2", 8},
    Row{DType::kFloat8E5M2FNUZ, "float8_e5m2fnuz", 8},
    Row{DType::kFloat8E8M0, "float8_e8m0fnu", 8},
    Row{DType::kFloat4E2M1, "float4_e2m1fn", 4},
    Row{DType::kComplex64, "complex64", 64},
    Row{DType::kComplex128, "complex128", 128},
    Row{DType::kString, "string", 0},
};

const Row& row(DType dtype) {
  const auto i = static_cast<size_t>(dtype);
  return kRows[i < kRows.size() ? i : 0];
}

}  // namespace

std::string_view to_string(DType dtype) { return row(dtype).name; }
int bits_of(DType dtype) { return row(dtype).bits; }
size_t size_of(DType dtype) { return static_cast<size_t>(row(dtype).bits) / 8; }

std::optional<uint64_t> bytes_of(DType dtype, uint64_t elements) {
  if (!is_packed(dtype)) return checked_mul(elements, size_of(dtype));
  const uint64_t per_byte = 8 / static_cast<uint64_t>(row(dtype).bits);
  return elements / per_byte + (elements % per_byte != 0 ? 1 : 0);
}

std::optional<DType> dtype_from_string(std::string_view name) {
  for (const Row& r : kRows) {
    if (r.dtype != DType::kUndefined && r.name == name) return r.dtype;
  }
  return std::nullopt;
}

}  // namespace decant
