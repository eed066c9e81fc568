#include <cmath>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

Status infer_group_normalization(InferContext& context) {
  if (context.node().int_attribute("num_groups", 0) <= 0) return context.error("num_groups must be positive");
  DECANT_RETURN_IF_ERROR(require_rank(context, 1, 1));
  DECANT_RETURN_IF_ERROR(require_rank(context, 2, 1));
  return infer_same_float(context);
}

/// Channels in groups; each group of a sample is normalised as a whole; scale and bias by channel.
EvalResult eval_group_normalization(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  const int64_t groups = node.int_attribute("num_groups", 0);
  if (!is_float(x.dtype()) || x.rank() < 2 || groups <= 0 || x.dims()[1] % groups != 0) {
    return node_error(node, "needs a float tensor whose channels divide into num_groups");
  }
  const int64_t channels = x.dims()[1], inner = product(x.dims(), 2, x.rank());
  if (inputs[1]->elements() != channels || inputs[2]->elements() != channels) {
    return node_error(node, "scale and bias must have one element for each channel");
  }
  const double epsilon = node.float_attribute("epsilon", 1e-5f);
  const std::vector<double> scale = read<double>(*inputs[1]), bias = read<double>(*inputs[2]);
  std::vector<double> values = read<double>(x);
  const int64_t length = channels / groups * inner;
  for (int64_t at = 0; at < x.elements(); at += length) {
    double mean = 0, squares = 0;
    double* group = values.data() + at;
    for (int64_t i = 0; i < length; ++i) mean += group[i];
    mean /= static_cast<double>(length);
    for (int64_t i = 0; i < length; ++i) squares += (group[i] - mean) * (group[i] - mean);
    const double inverse = 1 / std::sqrt(squares / static_cast<double>(length) + epsilon);
    for (int64_t i = 0; i < length; ++i) {
      const auto channel = static_cast<size_t>((at + i) / inner % channels);
      group[i] = (group[i] - mean) * inverse * scale[channel] + bias[channel];
    }
  }
  return single(make_tensor<double>(x.dtype(), x.dims(), values));
}

}  // namespace

DECANT_OP(GroupNormalization) {
  return {.name = "GroupNormalization",
          .doc = "(x - mean) / deviation over groups of channels, * scale + bias",
          .min_inputs = 3,
          .max_inputs = 3,
          .infer = infer_group_normalization,
          .eval = eval_group_normalization};
}

}  // namespace decant::ir
