#include "ir/ops/common.h"

namespace decant::ir {
namespace {

Status infer_bitwise_not(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_integer, "an integer tensor"));
  return infer_same(context);
}

EvalResult eval_bitwise_not(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  if (!is_integer(x.dtype())) return node_error(node, "needs an integer tensor");
  std::vector<uint64_t> values = read<uint64_t>(x);
  for (uint64_t& v : values) v = ~v;
  return single(make_tensor<uint64_t>(x.dtype(), x.dims(), values));
}

}  // namespace

DECANT_OP(BitwiseNot) {
  return {.name = "BitwiseNot",
          .doc = "All bits inverted",
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = infer_bitwise_not,
          .eval = eval_bitwise_not};
}

}  // namespace decant::ir
