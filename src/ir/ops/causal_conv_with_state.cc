#include <cmath>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

Status infer_causal_conv(InferContext& context) {
  const std::string activation = context.node().string_attribute("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish") {
    return context.error("activation must be none, silu or swish");
  }
  DECANT_RETURN_IF_ERROR(require_same_dtype(context, 0, 4));
  DECANT_RETURN_IF_ERROR(require_rank(context, 0, 3));
  DECANT_RETURN_IF_ERROR(require_rank(context, 1, 3));
  DECANT_RETURN_IF_ERROR(require_rank(context, 2, 1));
  DECANT_RETURN_IF_ERROR(require_rank(context, 3, 3));
  DECANT_RETURN_IF_ERROR(infer_same_float(context));
  if (context.has_input(3) && context.shape(3)) {
    context.set_output(1, context.dtype(0), context.shape(3));
  } else if (context.shape(0) && context.shape(1)) {
    const Shape &x = *context.shape(0), &w = *context.shape(1);
    context.set_output(1, context.dtype(0), Shape{x[0], x[1], w[2] - Dim(1)});
  } else {
    context.set_output(1, context.dtype(0), context.fresh_shape(3, "conv_state"));
  }
  return ok_status();
}

/// y[t] = bias + sum_i w[i] * z[t + i] with z = past_state (or zeros) followed by x; the new state is z's
/// end.
EvalResult eval_causal_conv(const Node& node, EvalInputs inputs) {
  const Tensor &x = *inputs[0], &w = *inputs[1];
  const Tensor *bias = optional_input(inputs, 2), *past = optional_input(inputs, 3);
  if (!is_float(x.dtype()) || !is_float(w.dtype()) || x.rank() != 3 || w.rank() != 3 || w.dims()[1] != 1 ||
      w.dims()[0] != x.dims()[1] || w.dims()[2] < 1) {
    return node_error(node, "needs input [batch, channels, length] and weight [channels, 1, k]");
  }
  const int64_t batch = x.dims()[0], channels = x.dims()[1], length = x.dims()[2], taps = w.dims()[2];
  if (bias && bias->elements() != channels) return node_error(node, "needs one bias for each channel");
  if (past && past->dims() != Dims{batch, channels, taps - 1}) {
    return node_error(node, "past_state has another shape than [batch, channels, k - 1]");
  }
  const bool swish = node.string_attribute("activation", "none") != "none";
  const std::vector<double> values = read<double>(x), weights = read<double>(w);
  const std::vector<double> before = past ? read<double>(*past) : std::vector<double>();
  const std::vector<double> offsets = bias ? read<double>(*bias) : std::vector<double>();
  DECANT_ASSIGN(Tensor present, Tensor::allocate(x.dtype(), {batch, channels, taps - 1}));
  std::vector<double> out(values.size()), state(static_cast<size_t>(present.elements()));
  std::vector<double> line(static_cast<size_t>(taps - 1 + length));
  for (int64_t row = 0; row < batch * channels; ++row) {
    const int64_t channel = row % channels;
    for (int64_t i = 0; i < taps - 1; ++i) {
      line[static_cast<size_t>(i)] = past ? before[static_cast<size_t>(row * (taps - 1) + i)] : 0.0;
    }
    for (int64_t t = 0; t < length; ++t) {
      line[static_cast<size_t>(taps - 1 + t)] = values[static_cast<size_t>(row * length + t)];
    }
    for (int64_t t = 0; t < length; ++t) {
      double sum = bias ? offsets[static_cast<size_t>(channel)] : 0.0;
      for (int64_t i = 0; i < taps; ++i) {
        sum += weights[static_cast<size_t>(channel * taps + i)] * line[static_cast<size_t>(t + i)];
      }
      out[static_cast<size_t>(row * length + t)] = swish ? sum / (1 + std::exp(-sum)) : sum;
    }
    for (int64_t i = 0; i < taps - 1; ++i) {
      state[static_cast<size_t>(row * (taps - 1) + i)] = line[static_cast<size_t>(length + i)];
    }
  }
  std::vector<Tensor> results(2);
  DECANT_ASSIGN(results[0], make_tensor<double>(x.dtype(), x.dims(), out));
  write_range<double>(present, 0, std::span<const double>(state));
  results[1] = std::move(present);
  return results;
}

}  // namespace

DECANT_OP(CausalConvWithState) {
  return {.name = "CausalConvWithState",
          .doc = "Causal depthwise convolution along the last axis, with the last k - 1 inputs as state",
          .min_inputs = 2,
          .max_inputs = 4,
          .max_outputs = 2,
          .infer = infer_causal_conv,
          .eval = eval_causal_conv};
}

}  // namespace decant::ir
