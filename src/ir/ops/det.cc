#include <cmath>
#include <utility>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

Status infer_det(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_float, "a float tensor"));
  if (!context.shape(0)) {
    context.set_output(0, context.dtype(0), std::nullopt);
    return ok_status();
  }
  Shape shape = *context.shape(0);
  if (shape.size() < 2) return context.error("needs square matrices");
  DECANT_RETURN_IF_ERROR(merge_dims(context, shape[shape.size() - 1], shape[shape.size() - 2]).status());
  shape.resize(shape.size() - 2);
  context.set_output(0, context.dtype(0), std::move(shape));
  return ok_status();
}

/// Gaussian elimination with partial pivoting; overwrites `m` (n x n).
double determinant(double* m, int64_t n) {
  double result = 1;
  for (int64_t c = 0; c < n; ++c) {
    int64_t pivot = c;
    for (int64_t r = c + 1; r < n; ++r) {
      if (std::fabs(m[r * n + c]) > std::fabs(m[pivot * n + c])) pivot = r;
    }
    if (m[pivot * n + c] == 0) return 0;
    if (pivot != c) {
      for (int64_t k = 0; k < n; ++k) std::swap(m[pivot * n + k], m[c * n + k]);
      result = -result;
    }
    result *= m[c * n + c];
    for (int64_t r = c + 1; r < n; ++r) {
      const double factor = m[r * n + c] / m[c * n + c];
      for (int64_t k = c; k < n; ++k) m[r * n + k] -= factor * m[c * n + k];
    }
  }
  return result;
}

EvalResult eval_det(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  const size_t rank = x.rank();
  if (!is_float(x.dtype()) || rank < 2 || x.dims()[rank - 1] != x.dims()[rank - 2]) {
    return node_error(node, "needs square float matrices");
  }
  const int64_t n = x.dims()[rank - 1];
  Dims dims(x.dims().begin(), x.dims().end() - 2);
  std::vector<double> values = read<double>(x);
  std::vector<double> out(static_cast<size_t>(product(dims, 0, dims.size())));
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = determinant(values.data() + static_cast<int64_t>(i) * n * n, n);
  return single(make_tensor<double>(x.dtype(), std::move(dims), out));
}

}  // namespace

DECANT_OP(Det) {
  return {.name = "Det",
          .doc = "Determinants of square matrices",
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = infer_det,
          .eval = eval_det};
}

}  // namespace decant::ir
