#include <algorithm>

#include "runtime/kernel.h"

namespace decant::runtime {
namespace {

using ir::Node;

/// Running sums of f32 along one axis, in double.
std::unique_ptr<Kernel> make(const Node& node) {
  const ir::Value* x = node.input(0);
  if (x->dtype != DType::kFloat32 || !x->shape || x->shape->empty()) return nullptr;
  const bool exclusive = node.int_attribute("exclusive", 0) != 0,
             reverse = node.int_attribute("reverse", 0) != 0;
  return kernel_of([exclusive, reverse](const Call& call) {
    const Arg &in = call.inputs[0], &at = call.inputs[1];
    if (at.elements != 1) return invalid_argument("the axis must be one integer");
    int64_t axis = at.dtype == DType::kInt64 ? *at.as<const int64_t>() : *at.as<const int32_t>();
    if (axis < 0) axis += in.rank;
    if (axis < 0 || axis >= in.rank) return invalid_argument("the axis is outside the rank");
    int64_t lines = 1, inner = 1;
    for (int64_t i = 0; i < in.rank; ++i) {
      if (i < axis) lines *= in.dims[i];
      if (i > axis) inner *= in.dims[i];
    }
    const int64_t length = in.dims[axis];
    constexpr int64_t kBlock = 64;
    for (int64_t line = 0; line < lines; ++line) {
      for (int64_t begin = 0; begin < inner; begin += kBlock) {
        const int64_t n = std::min(kBlock, inner - begin);
        double totals[kBlock] = {};
        for (int64_t step = 0; step < length; ++step) {
          const int64_t row = (line * length + (reverse ? length - 1 - step : step)) * inner + begin;
          const float* const from = in.as<const float>() + row;
          float* const to = call.outputs[0].as<float>() + row;
          for (int64_t i = 0; i < n; ++i) {
            const double before = totals[i];
            totals[i] += static_cast<double>(from[i]);
            to[i] = static_cast<float>(exclusive ? before : totals[i]);
          }
        }
      }
    }
    return ok_status();
  });
}

}  // namespace

DECANT_KERNEL(CumSum) { return {"CumSum", "", &make}; }

}  // namespace decant::runtime
