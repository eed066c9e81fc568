#include "formats/gguf/tensor_types.h"

#include <string_view>

namespace decant::gguf {

std::optional<TensorType> tensor_type(uint32_t id) {
  const auto dense = [](DType dtype) { return TensorType{Encoding::kDense, dtype}; };
  const auto blocks = [](Encoding encoding) { return TensorType{encoding, DType::kFloat32}; };
  switch (id) {
    case 0:
      return dense(DType::kFloat32);
    case 1:
      return dense(DType::kFloat16);
    case 2:
      return blocks(Encoding::kQ4_0);
    case 3:
      return blocks(Encoding::kQ4_1);
    case 6:
      return blocks(Encoding::kQ5_0);
    case 7:
      return blocks(Encoding::kQ5_1);
    case 8:
      return blocks(Encoding::kQ8_0);
    case 10:
      return blocks(Encoding::kQ2_K);
    case 11:
      return blocks(Encoding::kQ3_K);
    case 12:
      return blocks(Encoding::kQ4_K);
    case 13:
      return blocks(Encoding::kQ5_K);
    case 14:
      return blocks(Encoding::kQ6_K);
    case 24:
      return dense(DType::kInt8);
    case 25:
      return dense(DType::kInt16);
    case 26:
      return dense(DType::kInt32);
    case 27:
      return dense(DType::kInt64);
    case 28:
      return dense(DType::kFloat64);
    case 30:
      return dense(DType::kBFloat16);
    default:
      return std::nullopt;
  }
}

std::string tensor_type_name(uint32_t id) {
  struct Row {
    uint32_t id;
    std::string_view name;
  };
  static constexpr Row kUndecoded[] = {
      {9, "Q8_1"},   {15, "Q8_K"},   {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"},
      {19, "IQ1_S"}, {20, "IQ4_NL"}, {21, "IQ3_S"},   {22, "IQ2_S"},  {23, "IQ4_XS"},
      {29, "IQ1_M"}, {34, "TQ1_0"},  {35, "TQ2_0"},   {39, "MXFP4"},  {40, "NVFP4"},
  };
  for (const Row& row : kUndecoded) {
    if (row.id == id) return std::string(row.name);
  }
  if (const auto type = tensor_type(id)) {
    return std::string(type->encoding == Encoding::kDense ? decant::to_string(type->dtype)
                                                          : decant::to_string(type->encoding));
  }
  return "type " + std::to_string(id);
}

}  // namespace decant::gguf
