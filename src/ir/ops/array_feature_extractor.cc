#include "ir/ops/common.h"

namespace decant::ir {
namespace {

Status infer_array_feature_extractor(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 1, is_index, "an integer tensor"));
  if (!context.shape(0) || context.shape(0)->empty()) {
    context.set_output(0, context.dtype(0), std::nullopt);
    return ok_status();
  }
  Shape shape = *context.shape(0);
  Dim count = 1;
  if (context.shape(1)) {
    for (const Dim& d : *context.shape(1)) count = count * d;
  } else {
    count = context.fresh_symbol("features");
  }
  shape.back() = count;
  if (shape.size() == 1) shape.insert(shape.begin(), Dim(1));
  context.set_output(0, context.dtype(0), std::move(shape));
  return ok_status();
}

/// Columns of the last axis; a list of features counts as one row.
EvalResult eval_array_feature_extractor(const Node& node, EvalInputs inputs) {
  const Tensor &x = *inputs[0], &picks = *inputs[1];
  if (x.rank() == 0 || !is_index(picks.dtype()))
    return node_error(node, "needs features and integer positions");
  Dims dims = x.dims();
  const int64_t columns = dims.back(), count = picks.elements();
  dims.back() = count;
  if (dims.size() == 1) dims.insert(dims.begin(), 1);
  DECANT_ASSIGN(Tensor out, Tensor::allocate(x.dtype(), dims));
  for (int64_t k = 0; k < count; ++k) {
    const int64_t column = picks.int_at(k);
    if (column < 0 || column >= columns) return node_error(node, "a position is outside the features");
    for (int64_t row = 0; row < out.elements() / count; ++row) {
      copy_elements(out, row * count + k, x, row * columns + column, 1);
    }
  }
  return single(std::move(out));
}

}  // namespace

DECANT_OP(ArrayFeatureExtractor) {
  return {.name = "ArrayFeatureExtractor",
          .domain = "ai.onnx.ml",
          .doc = "Columns of the last axis",
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = infer_array_feature_extractor,
          .eval = eval_array_feature_extractor};
}

}  // namespace decant::ir
