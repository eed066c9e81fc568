#include <cmath>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

Status infer_lp_normalization(InferContext& context) {
  const int64_t p = context.node().int_attribute("p", 2);
  if (p != 1 && p != 2) return context.error("p must be 1 or 2");
  return infer_same_float(context);
}

/// Lines whose norm is 0 give zeros, as in the ONNX reference.
EvalResult eval_lp_normalization(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  if (!is_float(x.dtype())) return node_error(node, "needs a float tensor");
  DECANT_ASSIGN(const size_t axis, resolve_axis(node, node.int_attribute("axis", -1), x.rank()));
  const bool squares = node.int_attribute("p", 2) == 2;
  std::vector<double> values = read<double>(x);
  const int64_t length = x.dims()[axis];
  if (!values.empty()) {
    const int64_t inner = product(x.dims(), axis + 1, x.rank()), lines = x.elements() / length;
    for (int64_t line = 0; line < lines; ++line) {
      const int64_t base = line / inner * length * inner + line % inner;
      const auto at = [&](int64_t n) -> double& { return values[static_cast<size_t>(base + n * inner)]; };
      double norm = 0;
      for (int64_t n = 0; n < length; ++n) norm += squares ? at(n) * at(n) : std::fabs(at(n));
      if (squares) norm = std::sqrt(norm);
      for (int64_t n = 0; n < length; ++n) at(n) = norm == 0 ? 0 : at(n) / norm;
    }
  }
  return single(make_tensor<double>(x.dtype(), x.dims(), values));
}

}  // namespace

DECANT_OP(LpNormalization) {
  return {.name = "LpNormalization",
          .doc = "x over its L1 or L2 norm along `axis`",
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = infer_lp_normalization,
          .eval = eval_lp_normalization};
}

}  // namespace decant::ir
