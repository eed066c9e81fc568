#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/small_float.h"
#include "ir/ops/common.h"

namespace decant::ir {
namespace {

bool is_small_quantized(DType t) {
  return is_small_integer(t) || (is_small_float(t) && t != DType::kFloat8E8M0);
}

/// What QuantizeLinear makes; DequantizeLinear also reads int32.
bool is_target(DType t) {
  return t == DType::kInt8 || t == DType::kUInt8 || t == DType::kInt16 || t == DType::kUInt16 ||
         is_small_quantized(t);
}

bool is_quantized(DType t) { return is_target(t) || t == DType::kInt32; }

bool is_scale(DType t) { return is_float(t) || t == DType::kFloat8E8M0; }

/// For every element of x, the index of its scale: one for all, one per index of `axis`, or one per block of
/// block_size along `axis`.
Result<std::vector<size_t>> scale_indices(const Node& node, const Tensor& x, const Tensor& scale) {
  const auto count = static_cast<size_t>(x.elements());
  const int64_t block = node.int_attribute("block_size", 0);
  if (scale.elements() == 1 && block == 0) return std::vector<size_t>(count, 0);
  DECANT_ASSIGN(const size_t axis, resolve_axis(node, node.int_attribute("axis", 1), x.rank()));
  Dims strides(x.rank(), 0);
  if (block == 0) {
    if (scale.rank() != 1 || scale.dims()[0] != x.dims()[axis]) {
      return node_error(
          node, fmt::format("scale {} does not fit axis {} of {}", describe(scale), axis, describe(x)));
    }
    strides[axis] = 1;
  } else {
    bool fits = block > 0 && scale.rank() == x.rank();
    for (size_t d = 0; fits && d < x.rank(); ++d) {
      const int64_t want = d == axis ? x.dims()[d] / block + (x.dims()[d] % block != 0 ? 1 : 0) : x.dims()[d];
      fits = scale.dims()[d] == want;
    }
    if (!fits) {
      return node_error(
          node, fmt::format("scale {} does not fit {} in blocks of {}", describe(scale), describe(x), block));
    }
    strides = strides_of(scale.dims());
  }
  const int64_t along = strides[axis];
  strides[axis] = 0;
  Dims position(x.rank(), 0);
  position[axis] = 1;
  std::vector<size_t> out(count);
  for_each_index<2>(x.dims(), {strides, position}, [&](int64_t i, const std::array<int64_t, 2>& at) {
    const int64_t step = block == 0 ? at[1] : at[1] / block;
    out[static_cast<size_t>(i)] = static_cast<size_t>(at[0] + step * along);
  });
  return out;
}

Status require_zero_point(const Node& node, const Tensor* zero, const Tensor& scale, DType dtype) {
  if (zero == nullptr || (zero->dtype() == dtype && zero->elements() == scale.elements())) return ok_status();
  return node_error(node,
                    fmt::format("zero point {} does not fit scale {}", describe(*zero), describe(scale)));
}

Status infer_dequantize(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_quantized, "a tensor of a quantized type"));
  DECANT_RETURN_IF_ERROR(require_dtype(context, 1, is_scale, "a float tensor"));
  DType dtype = is_float(context.dtype(1)) ? context.dtype(1) : DType::kFloat32;
  if (const int64_t code = context.node().int_attribute("output_dtype", 0); code != 0) {
    dtype = dtype_from_onnx_code(code);
    if (!is_float(dtype)) return context.error("output_dtype is no float type");
  }
  context.set_output(0, dtype, context.shape(0));
  return ok_status();
}

/// (x - zero_point) * scale.
EvalResult eval_dequantize(const Node& node, EvalInputs inputs) {
  const Tensor &x = *inputs[0], &scale = *inputs[1];
  const Tensor* zero = optional_input(inputs, 2);
  if (!is_quantized(x.dtype()) || !is_scale(scale.dtype()))
    return node_error(node, "needs integers and float scales");
  DECANT_RETURN_IF_ERROR(require_zero_point(node, zero, scale, x.dtype()));
  DECANT_ASSIGN(const auto at, scale_indices(node, x, scale));
  const std::vector<double> scales = read<double>(scale);
  const std::vector<double> zeros =
      zero != nullptr ? read<double>(*zero) : std::vector<double>(scales.size(), 0.0);
  std::vector<double> values = read<double>(x);
  for (size_t i = 0; i < values.size(); ++i) values[i] = (values[i] - zeros[at[i]]) * scales[at[i]];
  const int64_t code = node.int_attribute("output_dtype", 0);
  const DType fallback = is_float(scale.dtype()) ? scale.dtype() : DType::kFloat32;
  const DType dtype = code != 0 ? dtype_from_onnx_code(code) : fallback;
  if (!is_float(dtype)) return node_error(node, "output_dtype is no float type");
  return single(make_tensor<double>(dtype, x.dims(), values));
}

Result<Tensor> small_floats(DType dtype, Dims dims, const std::vector<double>& values, bool saturate) {
  DECANT_ASSIGN(Tensor out, Tensor::allocate(dtype, std::move(dims)));
  for (size_t i = 0; i < values.size(); ++i) {
    const uint8_t bits = float_to_small(dtype, static_cast<float>(values[i]), saturate);
    if (is_packed(dtype)) {
      packed_set(out.mutable_data_as<uint8_t>(), bits_of(dtype), static_cast<int64_t>(i), bits);
    } else {
      out.mutable_data_as<uint8_t>()[i] = bits;
    }
  }
  return out;
}

/// Result type: the zero point's, else output_dtype, else uint8.
DType quantized_dtype(const Node& node, std::optional<DType> zero) {
  if (zero) return *zero;
  const int64_t code = node.int_attribute("output_dtype", 0);
  return code != 0 ? dtype_from_onnx_code(code) : DType::kUInt8;
}

Status infer_quantize(InferContext& context) {
  const DType dtype =
      quantized_dtype(context.node(), context.has_input(2) ? std::optional(context.dtype(2)) : std::nullopt);
  if (!is_target(dtype)) return context.error("the result type is no quantized type");
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_number, "a number tensor"));
  DECANT_RETURN_IF_ERROR(require_dtype(
      context, 1, [](DType t) { return is_number(t) || is_scale(t); }, "a number tensor"));
  context.set_output(0, dtype, context.shape(0));
  return ok_status();
}

/// saturate(round_half_even(x / scale) + zero_point); the quotient is made in the scale's precision or in
/// `precision`. Float types round when they are stored.
EvalResult eval_quantize(const Node& node, EvalInputs inputs) {
  const Tensor &x = *inputs[0], &scale = *inputs[1];
  const Tensor* zero = optional_input(inputs, 2);
  const DType dtype = quantized_dtype(node, zero != nullptr ? std::optional(zero->dtype()) : std::nullopt);
  if (!is_target(dtype)) return node_error(node, "the result type is no quantized type");
  DECANT_RETURN_IF_ERROR(require_zero_point(node, zero, scale, dtype));
  DECANT_ASSIGN(const auto at, scale_indices(node, x, scale));
  const std::vector<double> scales = read<double>(scale);
  const std::vector<double> zeros =
      zero != nullptr ? read<double>(*zero) : std::vector<double>(scales.size(), 0.0);
  const int64_t code = node.int_attribute("precision", 0);
  const DType precision = code != 0                 ? dtype_from_onnx_code(code)
                          : is_float(scale.dtype()) ? scale.dtype()
                                                    : DType::kFloat32;
  if (!is_float(precision)) return node_error(node, "precision is no float type");
  std::vector<double> values = read<double>(x);
  for (size_t i = 0; i < values.size(); ++i) values[i] /= scales[at[i]];
  DECANT_ASSIGN(const Tensor quotients, make_tensor<double>(precision, x.dims(), values));
  values = read<double>(quotients);
  if (is_small_float(dtype)) {
    for (size_t i = 0; i < values.size(); ++i) values[i] += zeros[at[i]];
    return single(small_floats(dtype, x.dims(), values, node.int_attribute("saturate", 1) != 0));
  }
  const IntegerRange range = integer_range(dtype);
  for (size_t i = 0; i < values.size(); ++i) {
    const double rounded = std::nearbyint(values[i]) + zeros[at[i]];
    values[i] = std::clamp(rounded, static_cast<double>(range.min), static_cast<double>(range.max));
  }
  return single(make_tensor<double>(dtype, x.dims(), values));
}

Status infer_dynamic_quantize(InferContext& context) {
  if (context.dtype(0) != DType::kFloat32) return context.error("needs a float32 tensor");
  context.set_output(0, DType::kUInt8, context.shape(0));
  context.set_output(1, DType::kFloat32, Shape{});
  context.set_output(2, DType::kUInt8, Shape{});
  return ok_status();
}

/// To uint8 with one scale: the range of x, stretched to hold 0, is mapped to [0, 255]. Steps are float32, as
/// in ONNX.
EvalResult eval_dynamic_quantize(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  if (x.dtype() != DType::kFloat32) return node_error(node, "needs a float32 tensor");
  std::vector<double> values = read<double>(x);
  float low = 0, high = 0;
  for (double v : values) {
    low = std::min(low, static_cast<float>(v));
    high = std::max(high, static_cast<float>(v));
  }
  const float scale = high == low ? 1.0f : (high - low) / 255.0f;  // all zeros: one, as ONNX Runtime's
  const float zero = scale == 0 ? 0 : std::clamp(std::nearbyint((0.0f - low) / scale), 0.0f, 255.0f);
  for (double& v : values) {
    const float quotient = scale == 0 ? 0.0f : static_cast<float>(v) / scale;
    v = std::clamp(std::nearbyint(quotient) + zero, 0.0f, 255.0f);
  }
  std::vector<Tensor> out(3);
  DECANT_ASSIGN(out[0], make_tensor<double>(DType::kUInt8, x.dims(), values));
  out[1] = Tensor::scalar(scale);
  DECANT_ASSIGN(out[2], make_tensor<double>(DType::kUInt8, {}, {zero}));
  out.resize(std::max<size_t>(1, std::min<size_t>(3, node.outputs().size())));
  return out;
}

}  // namespace

DECANT_OP(DequantizeLinear) {
  return {.name = "DequantizeLinear",
          .doc = "(x - zero_point) * scale; per tensor, axis or block",
          .min_inputs = 2,
          .max_inputs = 3,
          .any_dtype = true,
          .infer = infer_dequantize,
          .eval = eval_dequantize};
}

DECANT_OP(QuantizeLinear) {
  return {.name = "QuantizeLinear",
          .doc = "x / scale + zero_point, rounded and saturated",
          .min_inputs = 2,
          .max_inputs = 3,
          .any_dtype = true,
          .infer = infer_quantize,
          .eval = eval_quantize};
}

DECANT_OP(DynamicQuantizeLinear) {
  return {.name = "DynamicQuantizeLinear",
          .doc = "uint8 by the range of x; also scale and zero point",
          .min_inputs = 1,
          .max_inputs = 1,
          .max_outputs = 3,
          .infer = infer_dynamic_quantize,
          .eval = eval_dynamic_quantize};
}

}  // namespace decant::ir
