#pragma once

#include <vector>

#include "ir/ops/common.h"

namespace decant::ir {

/// f(double) -> double on each element of a float tensor, rounded once to its dtype.
template <typename F>
EvalResult map_float(const Node& node, EvalInputs inputs, F f) {
  const Tensor& x = *inputs[0];
  if (!is_float(x.dtype())) return node_error(node, "needs a float tensor");
  std::vector<double> values = read<double>(x);
  for (double& v : values) v = f(v);
  return single(make_tensor<double>(x.dtype(), x.dims(), values));
}

}  // namespace decant::ir
