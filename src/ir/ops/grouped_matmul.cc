#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

Status infer_grouped_matmul(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_float, "a float tensor"));
  DECANT_RETURN_IF_ERROR(require_dtype(context, 1, is_float, "a float tensor"));
  DECANT_RETURN_IF_ERROR(require_dtype(context, 2, is_index, "int32 or int64"));
  DECANT_RETURN_IF_ERROR(require_rank(context, 0, 2));
  DECANT_RETURN_IF_ERROR(require_rank(context, 1, 3));
  DECANT_RETURN_IF_ERROR(require_rank(context, 2, 1));
  if (!context.shape(0) || !context.shape(1)) {
    context.set_output(0, context.dtype(0), std::nullopt);
    return ok_status();
  }
  const Shape &x = *context.shape(0), &w = *context.shape(1);
  const bool transposed = context.node().int_attribute("transB", 0) != 0;
  DECANT_ASSIGN([[maybe_unused]] const Dim inner, merge_dims(context, x[1], w[transposed ? 2 : 1]));
  context.set_output(0, context.dtype(0), Shape{x[0], w[transposed ? 1 : 2]});
  return ok_status();
}

/// Rows ends[g-1] .. ends[g]-1 of x [rows, k] times matrix g of a stack [groups, k, n] ([groups, n, k] with
/// transB). `ends` never falls, and its last number is the number of rows. As torch's grouped_mm.
EvalResult eval_grouped_matmul(const Node& node, EvalInputs inputs) {
  const Tensor &x = *inputs[0], &w = *inputs[1], &ends = *inputs[2];
  if (x.rank() != 2 || w.rank() != 3 || ends.rank() != 1)
    return node_error(node, "rows must be a matrix, weights a stack of matrices and ends a vector");
  const bool transposed = node.int_attribute("transB", 0) != 0;
  const int64_t rows = x.dims()[0], k = x.dims()[1], groups = w.dims()[0];
  const int64_t n = w.dims()[transposed ? 1 : 2];
  if (w.dims()[transposed ? 2 : 1] != k || ends.dims()[0] != groups)
    return node_error(node,
                      fmt::format("{}, {} and {} do not fit", describe(x), describe(w), describe(ends)));
  const std::vector<double> a = read<double>(x), b = read<double>(w);
  const std::vector<int64_t> end = ends.to_ints();
  std::vector<double> y(static_cast<size_t>(rows * n), 0.0);
  int64_t row = 0;
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t last = end[static_cast<size_t>(g)];
    if (last < row || last > rows) return node_error(node, "ends must not fall, nor pass the rows");
    for (; row < last; ++row) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t i = 0; i < k; ++i) {
          const int64_t at = transposed ? (g * n + j) * k + i : (g * k + i) * n + j;
          sum += a[static_cast<size_t>(row * k + i)] * b[static_cast<size_t>(at)];
        }
        y[static_cast<size_t>(row * n + j)] = sum;
      }
    }
  }
  if (row != rows) return node_error(node, fmt::format("{} rows belong to no group", rows - row));
  return single(make_tensor<double>(x.dtype(), {rows, n}, y));
}

}  // namespace

DECANT_OP(GroupedMatMul) {
  return {.name = "GroupedMatMul",
          .domain = "decant",
          .doc = "Groups of consecutive rows, each times its own matrix",
          .min_inputs = 3,
          .max_inputs = 3,
          .infer = infer_grouped_matmul,
          .eval = eval_grouped_matmul};
}

}  // namespace decant::ir
