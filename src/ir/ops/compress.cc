#include "ir/ops/common.h"

namespace decant::ir {
namespace {

/// Without `axis` the input is taken flat.
Status infer_compress(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 1, is_bool, "a bool tensor"));
  DECANT_RETURN_IF_ERROR(require_rank(context, 1, 1));
  const int64_t* axis = context.node().attribute<int64_t>("axis");
  const Dim count = context.fresh_symbol("compress");
  if (axis == nullptr) {
    context.set_output(0, context.dtype(0), Shape{count});
    return ok_status();
  }
  if (!context.shape(0)) {
    context.set_output(0, context.dtype(0), std::nullopt);
    return ok_status();
  }
  Shape shape = *context.shape(0);
  DECANT_ASSIGN(const size_t at, resolve_axis(context.node(), *axis, shape.size()));
  shape[at] = count;
  context.set_output(0, context.dtype(0), std::move(shape));
  return ok_status();
}

EvalResult eval_compress(const Node& node, EvalInputs inputs) {
  const Tensor& condition = *inputs[1];
  if (condition.dtype() != DType::kBool || condition.rank() != 1) {
    return node_error(node, "the condition must be a list of bools");
  }
  const int64_t* axis_attribute = node.attribute<int64_t>("axis");
  const Tensor x = axis_attribute ? *inputs[0] : inputs[0]->reshaped({inputs[0]->elements()});
  DECANT_ASSIGN(const size_t axis, resolve_axis(node, axis_attribute ? *axis_attribute : 0, x.rank()));
  const int64_t length = x.dims()[axis];
  if (condition.elements() > length) return node_error(node, "the condition is longer than the axis");
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < condition.elements(); ++i) {
    if (condition.int_at(i) != 0) kept.push_back(i);
  }
  Dims dims = x.dims();
  dims[axis] = static_cast<int64_t>(kept.size());
  DECANT_ASSIGN(Tensor out, Tensor::allocate(x.dtype(), dims));
  if (out.elements() == 0) return single(std::move(out));
  const int64_t inner = product(x.dims(), axis + 1, x.rank()), outer = product(x.dims(), 0, axis);
  for (int64_t o = 0; o < outer; ++o) {
    for (size_t k = 0; k < kept.size(); ++k) {
      const int64_t row = o * static_cast<int64_t>(kept.size()) + static_cast<int64_t>(k);
      copy_elements(out, row * inner, x, (o * length + kept[k]) * inner, inner);
    }
  }
  return single(std::move(out));
}

}  // namespace

DECANT_OP(Compress) {
  return {.name = "Compress",
          .doc = "The slices along `axis` (of the flat input without it) whose condition is true",
          .min_inputs = 2,
          .max_inputs = 2,
          .any_dtype = true,
          .infer = infer_compress,
          .eval = eval_compress};
}

}  // namespace decant::ir
