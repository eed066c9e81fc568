#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

/// Values pass through the stash type between the two stages; only float32 (1) is followed, doubles
/// otherwise.
constexpr int64_t kStashFloat = 1;

Status infer_layer_normalization(InferContext& context) {
  DECANT_RETURN_IF_ERROR(infer_same_float(context));
  if (!context.shape(0)) {
    context.set_output(1, DType::kFloat32, std::nullopt);
    context.set_output(2, DType::kFloat32, std::nullopt);
    return ok_status();
  }
  Shape shape = *context.shape(0);
  DECANT_ASSIGN(const size_t axis,
                resolve_axis(context.node(), context.node().int_attribute("axis", -1), shape.size()));
  for (size_t i = axis; i < shape.size(); ++i) shape[i] = Dim(1);
  const DType stash = dtype_from_onnx_code(context.node().int_attribute("stash_type", kStashFloat));
  if (!is_float(stash)) return context.error("stash_type is no float type");
  context.set_output(1, stash, shape);
  context.set_output(2, stash, shape);
  return ok_status();
}

Status infer_rms_normalization(InferContext& context) {
  if (context.shape(0)) {
    DECANT_ASSIGN(
        [[maybe_unused]] const size_t axis,
        resolve_axis(context.node(), context.node().int_attribute("axis", -1), context.shape(0)->size()));
  }
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_float, "a float tensor"));
  DECANT_RETURN_IF_ERROR(require_dtype(context, 1, is_float, "a float tensor"));
  context.set_output(0, context.dtype(1), context.shape(0));  // the scale's type, as in ONNX
  return ok_status();
}

/// Elements of scale or bias repeated over x.
Result<std::vector<double>> spread(const Node& node, const Tensor& t, const Tensor& x) {
  const auto dims = broadcast_dims(t.dims(), x.dims());
  if (!dims || *dims != x.dims()) {
    return node_error(node, fmt::format("{} does not broadcast to {}", describe(t), describe(x)));
  }
  const std::vector<double> values = read<double>(t);
  std::vector<double> out(static_cast<size_t>(x.elements()));
  for_each_index<1>(x.dims(), {broadcast_strides(t.dims(), x.dims())},
                    [&](int64_t i, const std::array<int64_t, 1>& at) {
                      out[static_cast<size_t>(i)] = values[static_cast<size_t>(at[0])];
                    });
  return out;
}

EvalResult eval_layer_normalization(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  if (!is_float(x.dtype())) return node_error(node, "needs a float tensor");
  DECANT_ASSIGN(const size_t axis, resolve_axis(node, node.int_attribute("axis", -1), x.rank()));
  const double epsilon = node.float_attribute("epsilon", 1e-5f);
  const DType stash = dtype_from_onnx_code(node.int_attribute("stash_type", kStashFloat));
  DECANT_ASSIGN(const auto scale, spread(node, *inputs[1], x));
  std::vector<double> bias;
  if (const Tensor* b = optional_input(inputs, 2)) {
    DECANT_ASSIGN(bias, spread(node, *b, x));
  }
  std::vector<double> values = read<double>(x);
  const int64_t length = product(x.dims(), axis, x.rank());
  const int64_t rows = length == 0 ? 0 : x.elements() / length;
  std::vector<double> means, deviations;
  for (int64_t r = 0; r < rows; ++r) {
    double* row = values.data() + r * length;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < length; ++i) sum += row[i];
    const double mean = sum / static_cast<double>(length);
    for (int64_t i = 0; i < length; ++i) squares += (row[i] - mean) * (row[i] - mean);
    const double inverse = 1 / std::sqrt(squares / static_cast<double>(length) + epsilon);
    for (int64_t i = 0; i < length; ++i) {
      const auto at = static_cast<size_t>(r * length + i);
      row[i] = (row[i] - mean) * inverse * scale[at] + (bias.empty() ? 0.0 : bias[at]);
    }
    means.push_back(mean);
    deviations.push_back(inverse);
  }
  std::vector<Tensor> out(std::max<size_t>(1, node.outputs().size()));
  DECANT_ASSIGN(out[0], make_tensor<double>(x.dtype(), x.dims(), values));
  Dims dims = x.dims();
  for (size_t i = axis; i < dims.size(); ++i) dims[i] = 1;
  for (size_t i = 1; i < out.size() && i < 3; ++i) {
    DECANT_ASSIGN(out[i], Tensor::allocate(stash, dims));
    const auto& list = i == 1 ? means : deviations;
    if (out[i].elements() != static_cast<int64_t>(list.size()))
      return node_error(node, "rows have no elements");
    write_range<double>(out[i], 0, std::span<const double>(list));
  }
  return out;
}

/// x / sqrt(mean(x^2) + epsilon), rounded to x's type, then times scale (ONNX RMSNormalization-23).
EvalResult eval_rms_normalization(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  if (!is_float(x.dtype())) return node_error(node, "needs a float tensor");
  DECANT_ASSIGN(const size_t axis, resolve_axis(node, node.int_attribute("axis", -1), x.rank()));
  const double epsilon = node.float_attribute("epsilon", 1e-5f);
  DECANT_ASSIGN(const auto scale, spread(node, *inputs[1], x));
  std::vector<double> values = read<double>(x);
  const int64_t length = product(x.dims(), axis, x.rank());
  for (int64_t r = 0; length > 0 && r < x.elements() / length; ++r) {
    double* row = values.data() + r * length;
    double squares = 0;
    for (int64_t i = 0; i < length; ++i) squares += row[i] * row[i];
    const double inverse = 1 / std::sqrt(squares / static_cast<double>(length) + epsilon);
    for (int64_t i = 0; i < length; ++i) row[i] *= inverse;
  }
  DECANT_ASSIGN(const Tensor rounded, make_tensor<double>(x.dtype(), x.dims(), values));
  values = read<double>(rounded);
  for (size_t i = 0; i < values.size(); ++i) values[i] *= scale[i];
  return single(make_tensor<double>(inputs[1]->dtype(), x.dims(), values));
}

}  // namespace

DECANT_OP(LayerNormalization) {
  return {.name = "LayerNormalization",
          .doc = "(x - mean) / deviation * scale + bias over the axes from `axis`",
          .min_inputs = 2,
          .max_inputs = 3,
          .max_outputs = 3,
          .infer = infer_layer_normalization,
          .eval = eval_layer_normalization};
}

DECANT_OP(RMSNormalization) {
  return {.name = "RMSNormalization",
          .doc = "x / root mean square * scale over the axes from `axis`",
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = infer_rms_normalization,
          .eval = eval_rms_normalization};
}

}  // namespace decant::ir
