#include <algorithm>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

/// Shape of b with its last two axes exchanged.
Shape swap_last(Shape shape) {
  if (shape.size() >= 2) std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
  return shape;
}

Status infer_fused_matmul(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_float, "a float tensor"));
  DECANT_RETURN_IF_ERROR(require_dtype(context, 1, is_float, "a float tensor"));
  if (context.node().int_attribute("transA", 0) != 0) return context.error("transA is not supported");
  if (!context.shape(0) || !context.shape(1)) {
    context.set_output(0, context.dtype(0), std::nullopt);
    return ok_status();
  }
  Shape a = *context.shape(0), b = *context.shape(1);
  if (a.empty() || b.size() < 2) return context.error("the left operand needs a dim, the right one a matrix");
  if (context.node().int_attribute("transB", 0) != 0) b = swap_last(std::move(b));
  DECANT_ASSIGN([[maybe_unused]] const Dim inner, merge_dims(context, a.back(), b[b.size() - 2]));
  Shape out(a.begin(), a.end() - 1);
  if (b.size() > 2) {
    if (a.size() < 2) return context.error("a vector times a stack of matrices is not supported");
    DECANT_ASSIGN(out,
                  broadcast_shapes(context, Shape(a.begin(), a.end() - 2), Shape(b.begin(), b.end() - 2)));
    out.push_back(a[a.size() - 2]);
  }
  out.push_back(b.back());
  context.set_output(0, context.dtype(0), std::move(out));
  return ok_status();
}

EvalResult eval_fused_matmul(const Node& node, EvalInputs inputs) {
  const Tensor &x = *inputs[0], &y = *inputs[1];
  if (x.rank() < 1 || y.rank() < 2)
    return node_error(node, "the left operand needs a dim, the right one a matrix");
  std::vector<int64_t> dims = y.dims();
  const std::vector<double> stored = read<double>(y);
  std::vector<double> values = stored;
  if (node.int_attribute("transB", 0) != 0) {
    const int64_t rows = dims[dims.size() - 2], columns = dims.back();
    const int64_t area = rows * columns;
    for (int64_t i = 0; i < y.elements(); ++i) {
      const int64_t base = area ? i / area * area : 0, r = (i - base) / columns, c = (i - base) % columns;
      values[static_cast<size_t>(base + c * rows + r)] = stored[static_cast<size_t>(i)];
    }
    std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
  }
  const float alpha = node.float_attribute("alpha", 1.0f);
  for (double& v : values) v *= alpha;
  DECANT_ASSIGN(Tensor b, Tensor::allocate(x.dtype(), dims));
  write_range<double>(b, 0, std::span<const double>(values));
  const Node product("MatMul", "");
  const Tensor* operands[] = {&x, &b};
  return evaluate_node(product, operands);
}

}  // namespace

DECANT_OP(FusedMatMul) {
  return {.name = "FusedMatMul",
          .domain = "com.microsoft",
          .doc = "alpha * A * B or A * transposed B; B may be stored in another float type",
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = infer_fused_matmul,
          .eval = eval_fused_matmul};
}

}  // namespace decant::ir
