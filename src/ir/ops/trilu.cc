#include <cstring>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

Status infer_trilu(InferContext& context) {
  if (context.shape(0) && context.shape(0)->size() < 2) return context.error("needs a matrix");
  return infer_same(context);
}

EvalResult eval_trilu(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  if (x.rank() < 2) return node_error(node, "needs a matrix");
  const Tensor* diagonal = optional_input(inputs, 1);
  if (diagonal != nullptr && (diagonal->elements() != 1 || !is_index(diagonal->dtype()))) {
    return node_error(node, "k must be one integer");
  }
  const int64_t k = diagonal != nullptr ? diagonal->int_at(0) : 0;
  const bool upper = node.int_attribute("upper", 1) != 0;
  DECANT_ASSIGN(Tensor out, clone(x));
  const int64_t rows = x.dims()[x.rank() - 2], columns = x.dims()[x.rank() - 1];
  for (int64_t i = 0; i < out.elements(); ++i) {
    const int64_t column = i % columns, row = i / columns % rows;
    const bool keep = upper ? column - row >= k : column - row <= k;
    if (!keep) fill_elements(out, i, nullptr, 1);
  }
  return single(std::move(out));
}

}  // namespace

DECANT_OP(Trilu) {
  return {.name = "Trilu",
          .doc = "Upper or lower triangle from diagonal k, the rest 0",
          .min_inputs = 1,
          .max_inputs = 2,
          .any_dtype = true,
          .infer = infer_trilu,
          .eval = eval_trilu};
}

}  // namespace decant::ir
