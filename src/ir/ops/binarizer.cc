#include "ir/ops/common.h"

namespace decant::ir {
namespace {

Status infer_binarizer(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_number, "a number tensor"));
  return infer_same(context);
}

EvalResult eval_binarizer(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  if (!is_number(x.dtype())) return node_error(node, "needs a number tensor");
  const double threshold = node.float_attribute("threshold", 0.0f);
  std::vector<double> values = read<double>(x);
  for (double& v : values) v = v > threshold ? 1 : 0;
  return single(make_tensor<double>(x.dtype(), x.dims(), values));
}

}  // namespace

DECANT_OP(Binarizer) {
  return {.name = "Binarizer",
          .domain = "ai.onnx.ml",
          .doc = "1 above the threshold, else 0",
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = infer_binarizer,
          .eval = eval_binarizer};
}

}  // namespace decant::ir
