#include <cstring>

#include <fmt/format.h>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

/// The tensor that a Constant node holds in one of its attributes; the reader normally turns the node into a
/// constant value before.
Result<Tensor> constant_value(const Node& node) {
  if (const auto* value = node.attribute<ConstantPtr>("value"); value != nullptr && *value != nullptr) {
    return (*value)->materialize();
  }
  if (const auto* value = node.attribute<int64_t>("value_int")) return Tensor::scalar(*value);
  if (const auto* value = node.attribute<float>("value_float")) return Tensor::scalar(*value);
  if (const auto* value = node.attribute<std::vector<int64_t>>("value_ints")) return Tensor::vector(*value);
  if (const auto* value = node.attribute<std::vector<float>>("value_floats")) {
    std::vector<double> values(value->begin(), value->end());
    return make_tensor<double>(DType::kFloat32, {static_cast<int64_t>(values.size())}, values);
  }
  return node_error(node, "holds no numeric value");
}

Status infer_constant(InferContext& context) {
  if (const auto* value = context.node().attribute<ConstantPtr>("value");
      value != nullptr && *value != nullptr) {
    context.set_output(0, (*value)->dtype(), Shape((*value)->dims().begin(), (*value)->dims().end()));
    if ((*value)->elements() > static_cast<int64_t>(kMaxFollowedElements) ||
        !is_countable((*value)->dtype())) {
      return ok_status();
    }
  }
  DECANT_ASSIGN(const Tensor tensor, constant_value(context.node()));
  context.set_output(0, tensor.dtype(), Shape(tensor.dims().begin(), tensor.dims().end()));
  if (!is_countable(tensor.dtype()) || tensor.rank() > 1) return ok_status();
  const std::vector<int64_t> values = tensor.to_ints();
  follow_elements(context, std::vector<Dim>(values.begin(), values.end()));
  return ok_status();
}

/// The value of ConstantOfShape: one element, float32 0 by default.
Result<Tensor> fill_value(const Node& node) {
  const auto* value = node.attribute<ConstantPtr>("value");
  if (value == nullptr || *value == nullptr) return Tensor::scalar(0.0f);
  if ((*value)->elements() != 1) return node_error(node, "attribute 'value' must have one element");
  return (*value)->materialize();
}

Status infer_constant_of_shape(InferContext& context) {
  DECANT_ASSIGN(const Tensor value, fill_value(context.node()));
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_index, "an int64 tensor"));
  if (const auto elements = context.elements(0)) {
    for (const Dim& d : *elements) {
      if (d.is_constant() && d.constant() < 0) return context.error("a dim is negative");
    }
    context.set_output(0, value.dtype(), *elements);
    if (is_countable(value.dtype()) && elements->size() <= 1) {
      const auto count = elements->empty() ? std::optional<int64_t>(1) : (*elements)[0].as_constant();
      if (count && *count >= 0 && *count <= static_cast<int64_t>(kMaxFollowedElements)) {
        follow_elements(context, std::vector<Dim>(static_cast<size_t>(*count), Dim(value.int_at(0))));
      }
    }
    return ok_status();
  }
  const auto rank = constant_length(context, 0);
  std::optional<Shape> shape;
  if (rank && *rank >= 0 && *rank <= 64) shape = context.fresh_shape(static_cast<size_t>(*rank), "dim");
  context.set_output(0, value.dtype(), std::move(shape));
  return ok_status();
}

EvalResult eval_constant_of_shape(const Node& node, EvalInputs inputs) {
  DECANT_ASSIGN(const Tensor value, fill_value(node));
  DECANT_ASSIGN(auto dims, read_int_list(node, *inputs[0], "the shape"));
  DECANT_ASSIGN(Tensor out, Tensor::allocate(value.dtype(), dims));
  fill_elements(out, 0, &value, out.elements());
  return single(std::move(out));
}

}  // namespace

DECANT_OP(Constant) {
  return {.name = "Constant",
          .doc = "The tensor of its attribute",
          .min_inputs = 0,
          .max_inputs = 0,
          .infer = infer_constant,
          .eval = [](const Node& node, EvalInputs) -> EvalResult { return single(constant_value(node)); }};
}

DECANT_OP(ConstantOfShape) {
  return {.name = "ConstantOfShape",
          .doc = "A tensor of the given shape, filled with `value`",
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = infer_constant_of_shape,
          .eval = eval_constant_of_shape};
}

}  // namespace decant::ir
