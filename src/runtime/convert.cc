#include "runtime/convert.h"

#include <cstring>
#include <limits>

#include "ir/constant.h"

namespace decant::runtime {

Result<ir::Tensor> convert(const ir::Tensor& tensor, DType dtype) {
  const auto is_index = [](DType t) { return t == DType::kInt32 || t == DType::kInt64; };
  const DType from = tensor.dtype();
  DECANT_ASSIGN(ir::Tensor result, ir::Tensor::allocate(dtype, tensor.dims()));
  if (from == dtype) {
    if (tensor.bytes()) std::memcpy(result.mutable_data(), tensor.data(), tensor.bytes());
    return result;
  }
  if (is_float(from) && is_float(dtype)) {
    DECANT_RETURN_IF_ERROR(ir::cast_constant(ir::Constant::from_tensor(tensor), dtype)
                               ->read_rows(0, tensor.rank() == 0 ? 1 : tensor.dims()[0],
                                           {result.mutable_data_as<std::byte>(), result.bytes()}));
    return result;
  }
  if (!is_index(from) || !is_index(dtype)) {
    return invalid_argument(ir::describe(tensor) + " cannot stand for " + std::string(to_string(dtype)));
  }
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const int64_t value = tensor.int_at(i);
    if (dtype == DType::kInt64) {
      result.mutable_data_as<int64_t>()[i] = value;
      continue;
    }
    if (value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max())
      return out_of_range(std::to_string(value) + " does not fit int32");
    result.mutable_data_as<int32_t>()[i] = static_cast<int32_t>(value);
  }
  return result;
}

}  // namespace decant::runtime
