#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "runtime/kernel.h"

namespace decant::runtime {
namespace {

using ir::Node;

std::unique_ptr<Kernel> make_shape(const Node& node) {
  const int64_t start = node.int_attribute("start", 0);
  return kernel_of([start](const Call& call) {
    const Arg &x = call.inputs[0], &y = call.outputs[0];
    const int64_t first = std::clamp<int64_t>(start < 0 ? start + x.rank : start, 0, x.rank);
    if (y.elements > x.rank - first) return internal_error("a shape does not fit its output");
    std::copy(x.dims + first, x.dims + first + y.elements, y.as<int64_t>());
    return ok_status();
  });
}

/// Every element the attribute `value`, 0 without it.
std::unique_ptr<Kernel> make_constant_of_shape(const Node& node) {
  const size_t size = size_of(node.output(0)->dtype);
  const auto* value = node.attribute<ir::ConstantPtr>("value");
  if (size == 0 || (value && (!*value || (*value)->elements() != 1 || !(*value)->in_memory())))
    return nullptr;
  std::array<std::byte, 16> element{};
  if (size > element.size()) return nullptr;
  if (value) std::memcpy(element.data(), (*value)->tensor().data(), size);
  return kernel_of([element, size](const Call& call) {
    const Arg& y = call.outputs[0];
    for (int64_t i = 0; i < y.elements; ++i)
      std::memcpy(y.as<std::byte>() + static_cast<size_t>(i) * size, element.data(), size);
    return ok_status();
  });
}

/// The triangle above (`upper`) or below the diagonal k of the last two axes; zeros elsewhere.
std::unique_ptr<Kernel> make_trilu(const Node& node) {
  const ir::Value* x = node.input(0);
  const size_t size = size_of(x->dtype);
  if (!x->shape || x->shape->size() < 2 || size == 0) return nullptr;
  const bool upper = node.int_attribute("upper", 1) != 0;
  return kernel_of([upper, size](const Call& call) {
    const Arg &in = call.inputs[0], &out = call.outputs[0];
    const int64_t k = call.inputs.size() > 1 && call.inputs[1] ? *call.inputs[1].as<const int64_t>() : 0;
    const int64_t rows = in.dims[in.rank - 2], cols = in.dims[in.rank - 1];
    const int64_t lines = cols ? in.elements / cols : 0;
    for (int64_t line = 0; line < lines; ++line) {
      // Columns [0, cut) lie below the diagonal.
      const int64_t cut = std::clamp<int64_t>(
          std::clamp<int64_t>(k, -rows - cols, rows + cols) + line % rows + (upper ? 0 : 1), 0, cols);
      const auto at = static_cast<size_t>(line * cols) * size, width = static_cast<size_t>(cols) * size;
      const size_t edge = static_cast<size_t>(cut) * size;
      std::byte* const y = out.as<std::byte>() + at;
      std::memmove(y, in.as<const std::byte>() + at, width);
      if (upper) {
        std::memset(y, 0, edge);
      } else {
        std::memset(y + edge, 0, width - edge);
      }
    }
    return ok_status();
  });
}

/// f32 to the power of one number.
std::unique_ptr<Kernel> make_pow(const Node& node) {
  const ir::Value *x = node.input(0), *exponent = node.input(1);
  if (x->dtype != DType::kFloat32 || exponent->dtype != DType::kFloat32 || !exponent->constant ||
      exponent->constant->elements() != 1 || !exponent->constant->in_memory() || !x->shape ||
      x->shape->size() < exponent->constant->dims().size())
    return nullptr;
  const auto p = static_cast<float>(exponent->constant->tensor().double_at(0));
  return kernel_of([p](const Call& call) {
    const auto* in = call.inputs[0].as<const float>();
    auto* out = call.outputs[0].as<float>();
    const int64_t n = call.inputs[0].elements;
    if (p == 2.0f) {
      kernels::binary(call.kernels, kernels::BinaryOp::kMul, in, in, out, n);
    } else if (p == 3.0f) {
      for (int64_t i = 0; i < n; ++i) out[i] = in[i] * in[i] * in[i];
    } else {
      for (int64_t i = 0; i < n; ++i) out[i] = std::pow(in[i], p);
    }
    return ok_status();
  });
}

}  // namespace

DECANT_KERNEL(Shape) { return {"Shape", "", &make_shape}; }
DECANT_KERNEL(ConstantOfShape) { return {"ConstantOfShape", "", &make_constant_of_shape}; }
DECANT_KERNEL(Trilu) { return {"Trilu", "", &make_trilu}; }
DECANT_KERNEL(Pow) { return {"Pow", "", &make_pow}; }

}  // namespace decant::runtime
