#include <algorithm>
#include <cmath>

#include "runtime/kernel.h"

namespace decant::runtime {
namespace {

using ir::Node;

bool is_byte(DType t) { return t == DType::kInt8 || t == DType::kUInt8; }

bool is_one_number(const ir::Value* v) {
  return v->shape && (v->shape->empty() || (v->shape->size() == 1 && (*v->shape)[0] == ir::Dim(1)));
}

int32_t zero_of(std::span<const Arg> in) {
  if (in.size() < 3 || !in[2]) return 0;
  return in[2].dtype == DType::kInt8 ? *in[2].as<const int8_t>() : *in[2].as<const uint8_t>();
}

/// One scale for the whole tensor, float32, 8-bit codes.
bool per_tensor(const Node& node) {
  const ir::Value *scale = node.input(1), *zero = node.input(2);
  return node.int_attribute("block_size", 0) == 0 && scale->dtype == DType::kFloat32 &&
         is_one_number(scale) && (!zero || (is_byte(zero->dtype) && is_one_number(zero)));
}

std::unique_ptr<Kernel> make_dequantize(const Node& node) {
  if (!is_byte(node.input(0)->dtype) || node.output(0)->dtype != DType::kFloat32 || !per_tensor(node))
    return nullptr;
  return kernel_of([](const Call& call) {
    const Arg &x = call.inputs[0], &y = call.outputs[0];
    const float scale = *call.inputs[1].as<const float>();
    const int32_t zero = zero_of(call.inputs);
    const auto convert = [&](const auto* codes) {
      float* const out = y.as<float>();
      for (int64_t i = 0; i < x.elements; ++i) out[i] = static_cast<float>(codes[i] - zero) * scale;
    };
    if (x.dtype == DType::kInt8)
      convert(x.as<const int8_t>());
    else
      convert(x.as<const uint8_t>());
    return ok_status();
  });
}

std::unique_ptr<Kernel> make_quantize(const Node& node) {
  if (node.input(0)->dtype != DType::kFloat32 || !is_byte(node.output(0)->dtype) || !per_tensor(node) ||
      node.int_attribute("precision", 0) > 1)
    return nullptr;
  return kernel_of([](const Call& call) {
    const Arg &x = call.inputs[0], &y = call.outputs[0];
    kernels::quantize(call.kernels, x.as<const float>(), *call.inputs[1].as<const float>(),
                      zero_of(call.inputs), y.dtype == DType::kInt8, y.data, x.elements);
    return ok_status();
  });
}

}  // namespace

DECANT_KERNEL(DequantizeLinear) { return {"DequantizeLinear", "", &make_dequantize}; }
DECANT_KERNEL(QuantizeLinear) { return {"QuantizeLinear", "", &make_quantize}; }

}  // namespace decant::runtime
