#include <cstring>

#include "base/half.h"
#include "ir/packed_constant.h"
#include "runtime/kernel.h"
#include "runtime/ops/gather.h"

namespace decant::runtime {
namespace {

using ir::Node;

/// Rows of a packed table, decoded when they are asked for: the plan holds no dense copy (see
/// gathers_packed_rows).
std::unique_ptr<Kernel> make_packed(const ir::ConstantPtr& table, DType index_dtype) {
  return kernel_of([table, index_dtype](const Call& call) {
    const Arg &i = call.inputs[1], &y = call.outputs[0];
    const int64_t count = table->rows();
    const size_t row = count ? table->bytes() / static_cast<size_t>(count) : 0;
    for (int64_t n = 0; n < i.elements; ++n) {
      int64_t index = index_dtype == DType::kInt64 ? i.as<const int64_t>()[n] : i.as<const int32_t>()[n];
      if (index < -count || index >= count) {
        return out_of_range("index " + std::to_string(index) + " is outside [0, " + std::to_string(count) +
                            ")");
      }
      if (index < 0) index += count;
      DECANT_RETURN_IF_ERROR(
          table->read_rows(index, index + 1, {y.as<std::byte>() + static_cast<size_t>(n) * row, row}));
    }
    return ok_status();
  });
}

/// Gather along any axis; rows of half-precision tables may be widened to f32 (the embedding of a half
/// model).
std::unique_ptr<Kernel> make(const Node& node) {
  const ir::Value *data = node.input(0), *indices = node.input(1), *out = node.output(0);
  if (!data->shape || data->shape->empty() ||
      (indices->dtype != DType::kInt64 && indices->dtype != DType::kInt32))
    return nullptr;
  if (gathers_packed_rows(node)) return make_packed(data->constant, indices->dtype);
  const bool widen = out->dtype != data->dtype;
  if (widen &&
      (out->dtype != DType::kFloat32 || (data->dtype != DType::kFloat16 && data->dtype != DType::kBFloat16)))
    return nullptr;
  int64_t axis = node.int_attribute("axis", 0);
  if (axis < 0) axis += static_cast<int64_t>(data->shape->size());
  return kernel_of([axis, widen](const Call& call) {
    const Arg &x = call.inputs[0], &i = call.inputs[1], &y = call.outputs[0];
    int64_t outer = 1, inner = 1;
    for (int64_t d = 0; d < axis; ++d) outer *= x.dims[d];
    for (int64_t d = axis + 1; d < x.rank; ++d) inner *= x.dims[d];
    const int64_t count = x.dims[axis];
    const size_t size = size_of(x.dtype), bytes = static_cast<size_t>(inner) * size;
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t n = 0; n < i.elements; ++n) {
        int64_t index = i.dtype == DType::kInt64 ? i.as<const int64_t>()[n] : i.as<const int32_t>()[n];
        if (index < -count || index >= count)
          return out_of_range("index " + std::to_string(index) + " is outside [0, " + std::to_string(count) +
                              ")");
        if (index < 0) index += count;
        const std::byte* from =
            x.as<const std::byte>() + static_cast<size_t>((o * count + index) * inner) * size;
        const int64_t to = (o * i.elements + n) * inner;
        if (widen) {
          kernels::convert_to_f32(call.kernels, x.dtype, from, y.as<float>() + to, inner);
        } else {
          std::memcpy(y.as<std::byte>() + static_cast<size_t>(to) * size, from, bytes);
        }
      }
    }
    return ok_status();
  });
}

}  // namespace

bool gathers_packed_rows(const Node& node) {
  if (!node.is("Gather") || node.int_attribute("axis", 0) != 0) return false;
  const ir::Value *data = node.input(0), *indices = node.input(1);
  if (!data || !data->constant || data->constant->dims().empty()) return false;
  if (!ir::decodes_rows(*data->constant)) return false;
  return indices && (indices->dtype == DType::kInt64 || indices->dtype == DType::kInt32) && node.output(0) &&
         node.output(0)->dtype == data->dtype;
}

DECANT_KERNEL(Gather) { return {"Gather", "", &make}; }

}  // namespace decant::runtime
