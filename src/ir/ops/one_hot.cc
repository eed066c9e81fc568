#include "ir/ops/common.h"

namespace decant::ir {
namespace {

/// The new axis; it may be appended, so the rank counts one more.
Result<size_t> new_axis(const Node& node, size_t rank) {
  return resolve_axis(node, node.int_attribute("axis", -1), rank + 1);
}

Status infer_one_hot(InferContext& context) {
  const DType dtype = context.dtype(2);
  if (!context.shape(0)) {
    context.set_output(0, dtype, std::nullopt);
    return ok_status();
  }
  Shape shape = *context.shape(0);
  DECANT_ASSIGN(const size_t axis, new_axis(context.node(), shape.size()));
  const auto depth = context.elements(1);
  const bool known = depth && depth->size() == 1;
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis),
               known ? (*depth)[0] : context.fresh_symbol("depth"));
  context.set_output(0, dtype, std::move(shape));
  return ok_status();
}

/// Indices outside [-depth, depth) give a row of off values.
EvalResult eval_one_hot(const Node& node, EvalInputs inputs) {
  const Tensor &indices = *inputs[0], &depth_tensor = *inputs[1], &values = *inputs[2];
  if (depth_tensor.elements() != 1 || values.elements() != 2 || !is_number(indices.dtype())) {
    return node_error(node, "needs number indices, one depth and two values");
  }
  DECANT_ASSIGN(const size_t axis, new_axis(node, indices.rank()));
  const int64_t depth = read<int64_t>(depth_tensor)[0];
  Dims dims = indices.dims();
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis), depth);
  DECANT_ASSIGN(Tensor out, Tensor::allocate(values.dtype(), dims));
  const Dims picks = read<int64_t>(indices);
  Dims strides = strides_of(indices.dims());
  strides.insert(strides.begin() + static_cast<std::ptrdiff_t>(axis), 0);
  Dims count(dims.size(), 0);
  count[axis] = 1;
  for_each_index<2>(dims, {strides, count}, [&](int64_t i, const std::array<int64_t, 2>& at) {
    int64_t pick = picks[static_cast<size_t>(at[0])];
    if (pick < 0) pick += depth;
    copy_elements(out, i, values, pick == at[1] ? 1 : 0, 1);
  });
  return single(std::move(out));
}

}  // namespace

DECANT_OP(OneHot) {
  return {.name = "OneHot",
          .doc = "A new axis with the on value at the index",
          .min_inputs = 3,
          .max_inputs = 3,
          .infer = infer_one_hot,
          .eval = eval_one_hot};
}

}  // namespace decant::ir
