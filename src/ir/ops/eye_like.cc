#include <algorithm>

#include <fmt/format.h>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

DType eye_dtype(const Node& node, DType input) {
  const int64_t* code = node.attribute<int64_t>("dtype");
  return code ? dtype_from_onnx_code(*code) : input;
}

Status infer_eye_like(InferContext& context) {
  const DType dtype = eye_dtype(context.node(), context.dtype(0));
  if (dtype == DType::kUndefined)
    return unsupported(context.node().describe() + ": its dtype is not supported");
  DECANT_RETURN_IF_ERROR(require_rank(context, 0, 2));
  context.set_output(0, dtype, context.shape(0));
  return ok_status();
}

EvalResult eval_eye_like(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  if (x.rank() != 2) return node_error(node, "needs a matrix");
  const int64_t k = node.int_attribute("k", 0), rows = x.dims()[0], columns = x.dims()[1];
  std::vector<int64_t> values(static_cast<size_t>(x.elements()), 0);
  for (int64_t r = 0; r < rows; ++r) {
    // k may be anything: the column is only formed when it is inside.
    if (k >= -r && k < columns - r) values[static_cast<size_t>(r * columns + r + k)] = 1;
  }
  return single(make_tensor<int64_t>(eye_dtype(node, x.dtype()), x.dims(), values));
}

}  // namespace

DECANT_OP(EyeLike) {
  return {.name = "EyeLike",
          .doc = "A matrix of the input's shape with ones on diagonal k",
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = infer_eye_like,
          .eval = eval_eye_like};
}

}  // namespace decant::ir
