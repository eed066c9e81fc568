#pragma once

#include "formats/onnx/adapters/adapters.h"

namespace decant::onnx {

/// An integer tensor with its scale and (optional) zero point.
struct Quantized {
  ir::Value* data = nullptr;
  ir::Value* scale = nullptr;
  ir::Value* zero = nullptr;
};

/// (x - x_zero) (y - y_zero) in int32, times both scales, as float32. Zero points and scales of y may be one
/// for each column.
ir::Value* integer_product(Adaptation& a, const Quantized& x, const Quantized& y);

}  // namespace decant::onnx
