#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

Status infer_inverse(InferContext& context) {
  if (context.shape(0)) {
    const Shape& shape = *context.shape(0);
    if (shape.size() < 2) return context.error("needs a matrix");
    DECANT_ASSIGN([[maybe_unused]] const Dim n,
                  merge_dims(context, shape[shape.size() - 1], shape[shape.size() - 2]));
  }
  return infer_same_float(context);
}

/// Gauss-Jordan elimination with the largest pivot of each column.
EvalResult eval_inverse(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  if (x.rank() < 2 || x.dims()[x.rank() - 1] != x.dims()[x.rank() - 2] || !is_float(x.dtype()))
    return node_error(node, "needs square matrices of floats");
  const int64_t n = x.dims().back();
  std::vector<double> all = read<double>(x), out(all.size());
  const auto size = static_cast<size_t>(n);
  for (size_t at = 0; at < all.size(); at += size * size) {
    double *a = all.data() + at, *b = out.data() + at;
    for (size_t i = 0; i < size; ++i) b[i * size + i] = 1;
    for (size_t c = 0; c < size; ++c) {
      size_t pivot = c;
      for (size_t r = c + 1; r < size; ++r) {
        if (std::abs(a[r * size + c]) > std::abs(a[pivot * size + c])) pivot = r;
      }
      const double value = a[pivot * size + c];
      if (value == 0 || !std::isfinite(value)) return node_error(node, "a matrix has no inverse");
      for (size_t j = 0; j < size; ++j) {
        std::swap(a[c * size + j], a[pivot * size + j]);
        std::swap(b[c * size + j], b[pivot * size + j]);
        a[c * size + j] /= value;
        b[c * size + j] /= value;
      }
      for (size_t r = 0; r < size; ++r) {
        const double factor = a[r * size + c];
        if (r == c || factor == 0) continue;
        for (size_t j = 0; j < size; ++j) {
          a[r * size + j] -= factor * a[c * size + j];
          b[r * size + j] -= factor * b[c * size + j];
        }
      }
    }
  }
  return single(make_tensor<double>(x.dtype(), x.dims(), out));
}

}  // namespace

DECANT_OP(Inverse) {
  return {.name = "Inverse",
          .domain = "com.microsoft",
          .doc = "Inverse of square matrices",
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = infer_inverse,
          .eval = eval_inverse};
}

}  // namespace decant::ir
