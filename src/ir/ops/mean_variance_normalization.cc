#include <cmath>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

/// (x - mean) / (deviation + 1e-9), both over `axes`, as in the operator's function body.
EvalResult eval_mean_variance_normalization(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  if (!is_float(x.dtype())) return node_error(node, "needs a float tensor");
  std::vector<int64_t> axes = {0, 2, 3};
  if (const auto* given = node.attribute<std::vector<int64_t>>("axes")) axes = *given;
  DECANT_ASSIGN(const auto reduced, resolve_axes(node, axes, x.rank()));
  Dims kept = x.dims();
  for (size_t a : reduced) kept[a] = 1;
  Dims strides = strides_of(kept);
  for (size_t a : reduced) strides[a] = 0;
  std::vector<double> values = read<double>(x);
  if (values.empty()) return single(clone(x));
  std::vector<double> means(static_cast<size_t>(product(kept, 0, kept.size())), 0.0),
      squares(means.size(), 0.0);
  const double count = static_cast<double>(values.size()) / static_cast<double>(means.size());
  const auto visit = [&](auto f) {
    for_each_index<1>(x.dims(), {strides}, [&](int64_t i, const std::array<int64_t, 1>& at) {
      f(values[static_cast<size_t>(i)], static_cast<size_t>(at[0]));
    });
  };
  visit([&](double v, size_t m) { means[m] += v / count; });
  visit([&](double v, size_t m) { squares[m] += (v - means[m]) * (v - means[m]) / count; });
  visit([&](double& v, size_t m) { v = (v - means[m]) / (std::sqrt(squares[m]) + 1e-9); });
  return single(make_tensor<double>(x.dtype(), x.dims(), values));
}

}  // namespace

DECANT_OP(MeanVarianceNormalization) {
  return {.name = "MeanVarianceNormalization",
          .doc = "(x - mean) / deviation over `axes`",
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = infer_same_float,
          .eval = eval_mean_variance_normalization};
}

}  // namespace decant::ir
