#include "base/dtype.h"

#include <array>

namespace decant {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  size_t size;
};

constexpr std::array kRows = {
    Row{DType::kUndefined, "undefined", 0}, Row{DType::kFloat32, "float32", 4},
    Row{DType::kFloat64, "float64", 8},     Row{DType::kFloat16, "float16", 2},
    Row{DType::kBFloat16, "bfloat16", 2},   Row{DType::kInt8, "int8", 1},
    Row{DType::kInt16, "int16", 2},         Row{DType::kInt32, "int32", 4},
    Row{DType::kInt64, "int64", 8},         Row{DType::kUInt8, "uint8", 1},
    Row{DType::kUInt16, "uint16", 2},       Row{DType::kUInt32, "uint32", 4},
    Row{DType::kUInt64, "uint64", 8},       Row{DType::kBool, "bool", 1},
};

const Row& row(DType dtype) {
  const auto i = static_cast<size_t>(dtype);
  return kRows[i < kRows.size() ? i : 0];
}

}  // namespace

std::string_view to_string(DType dtype) { return row(dtype).name; }
size_t size_of(DType dtype) { return row(dtype).size; }

std::optional<DType> dtype_from_string(std::string_view name) {
  for (const Row& r : kRows) {
    if (r.dtype != DType::kUndefined && r.name == name) return r.dtype;
  }
  return std::nullopt;
}

}  // namespace decant
