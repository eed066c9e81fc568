#include <algorithm>
#include <numeric>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

/// The permutation; the default reverses the axes.
Result<std::vector<size_t>> permutation(const Node& node, size_t rank) {
  const auto* perm = node.attribute<std::vector<int64_t>>("perm");
  if (perm == nullptr) {
    std::vector<size_t> reversed(rank);
    std::iota(reversed.rbegin(), reversed.rend(), size_t{0});
    return reversed;
  }
  if (perm->size() != rank) return node_error(node, "attribute 'perm' does not match the rank");
  return resolve_axes(node, *perm, rank);
}

Status infer_transpose(InferContext& context) {
  if (!context.shape(0)) return infer_same(context);
  const Shape shape = *context.shape(0);
  DECANT_ASSIGN(const auto perm, permutation(context.node(), shape.size()));
  Shape out;
  for (size_t axis : perm) out.push_back(shape[axis]);
  context.set_output(0, context.dtype(0), std::move(out));
  if (shape.size() <= 1) {
    if (auto elements = context.elements(0)) follow_elements(context, *std::move(elements));
  }
  return ok_status();
}

EvalResult eval_transpose(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  DECANT_ASSIGN(const auto perm, permutation(node, x.rank()));
  const Dims own = strides_of(x.dims());
  Dims dims, strides;
  for (size_t axis : perm) {
    dims.push_back(x.dims()[axis]);
    strides.push_back(own[axis]);
  }
  return single(strided_copy(x, dims, strides, 0));
}

}  // namespace

DECANT_OP(Transpose) {
  return {.name = "Transpose",
          .doc = "Permutes the axes by `perm`",
          .min_inputs = 1,
          .max_inputs = 1,
          .any_dtype = true,
          .infer = infer_transpose,
          .eval = eval_transpose};
}

}  // namespace decant::ir
