#include <algorithm>
#include <cmath>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

Status infer_lrn(InferContext& context) {
  if (context.node().int_attribute("size", 0) <= 0) return context.error("size must be positive");
  return infer_same_float(context);
}

/// x / (bias + alpha / size * sum of x^2 over `size` channels around)^beta.
EvalResult eval_lrn(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  const int64_t size = node.int_attribute("size", 0);
  if (!is_float(x.dtype()) || x.rank() < 2 || size <= 0) {
    return node_error(node, "needs a float tensor with channels and a positive size");
  }
  const double alpha = node.float_attribute("alpha", 0.0001f), beta = node.float_attribute("beta", 0.75f),
               bias = node.float_attribute("bias", 1.0f);
  const int64_t batch = x.dims()[0], channels = x.dims()[1], inner = product(x.dims(), 2, x.rank());
  const std::vector<double> values = read<double>(x);
  std::vector<double> out(values.size());
  for (int64_t n = 0; n < batch && !values.empty(); ++n) {
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t first = std::max<int64_t>(0, c - (size - 1) / 2),
                    last = std::min(channels - 1, c + size / 2);
      for (int64_t i = 0; i < inner; ++i) {
        double squares = 0;
        for (int64_t k = first; k <= last; ++k) {
          const double v = values[static_cast<size_t>((n * channels + k) * inner + i)];
          squares += v * v;
        }
        const auto at = static_cast<size_t>((n * channels + c) * inner + i);
        out[at] = values[at] / std::pow(bias + alpha / static_cast<double>(size) * squares, beta);
      }
    }
  }
  return single(make_tensor<double>(x.dtype(), x.dims(), out));
}

}  // namespace

DECANT_OP(LRN) {
  return {.name = "LRN",
          .doc = "Local response normalization over neighbouring channels",
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = infer_lrn,
          .eval = eval_lrn};
}

}  // namespace decant::ir
