#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

Status infer_batch_normalization(InferContext& context) {
  DECANT_RETURN_IF_ERROR(infer_same_float(context));
  for (size_t i = 1; i < 5; ++i) {
    DECANT_RETURN_IF_ERROR(require_dtype(context, i, is_float, "a float tensor"));
    DECANT_RETURN_IF_ERROR(require_rank(context, i, 1));
  }
  const bool training = context.node().int_attribute("training_mode", 0) != 0;
  for (size_t i = 1; i < 3; ++i) {
    if (context.node().output(i) == nullptr) continue;
    if (!training) return context.error("has running means only with training_mode = 1");
    context.set_output(i, context.dtype(3), context.shape(3));
  }
  return ok_status();
}

struct Planes {
  int64_t batch, channels, size;
};

/// Channels are axis 1; a rank-1 tensor has one.
Result<Planes> planes_of(const Node& node, const Tensor& x, std::span<const Tensor* const> parameters) {
  if (!is_float(x.dtype()) || x.rank() < 1) return node_error(node, "needs a float tensor [N, C, ...]");
  Planes p{x.dims()[0], x.rank() > 1 ? x.dims()[1] : 1, x.rank() > 2 ? product(x.dims(), 2, x.rank()) : 1};
  for (const Tensor* t : parameters) {
    if (!is_float(t->dtype()) || t->rank() != 1 || t->elements() != p.channels) {
      return node_error(node, fmt::format("{} does not fit {} channels", describe(*t), p.channels));
    }
  }
  return p;
}

/// f(span of one channel's elements in one batch entry), for all batch entries.
template <typename F>
void for_channel(const Planes& p, std::vector<double>& values, int64_t channel, F&& f) {
  for (int64_t n = 0; n < p.batch; ++n) {
    f(std::span(values).subspan(static_cast<size_t>((n * p.channels + channel) * p.size),
                                static_cast<size_t>(p.size)));
  }
}

/// (x - mean) / sqrt(var + epsilon) * scale + bias by channels. In training mode mean and variance are the
/// batch's, and the running ones are returned.
EvalResult eval_batch_normalization(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  DECANT_ASSIGN(const Planes p, planes_of(node, x, inputs.subspan(1, 4)));
  const double epsilon = node.float_attribute("epsilon", 1e-5f),
               momentum = node.float_attribute("momentum", 0.9f);
  const bool training = node.int_attribute("training_mode", 0) != 0;
  const std::vector<double> scale = read<double>(*inputs[1]), bias = read<double>(*inputs[2]);
  const std::vector<double> running_mean = read<double>(*inputs[3]),
                            running_variance = read<double>(*inputs[4]);
  std::vector<double> mean = running_mean, variance = running_variance;
  std::vector<double> values = read<double>(x);
  const auto count = static_cast<double>(p.batch * p.size);
  for (int64_t c = 0; c < p.channels; ++c) {
    const auto at = static_cast<size_t>(c);
    if (training) {
      double sum = 0, squares = 0;
      for_channel(p, values, c, [&](std::span<double> plane) {
        for (double v : plane) sum += v;
      });
      mean[at] = sum / count;
      for_channel(p, values, c, [&](std::span<double> plane) {
        for (double v : plane) squares += (v - mean[at]) * (v - mean[at]);
      });
      variance[at] = squares / count;
    }
    const double factor = scale[at] / std::sqrt(variance[at] + epsilon);
    for_channel(p, values, c, [&](std::span<double> plane) {
      for (double& v : plane) v = (v - mean[at]) * factor + bias[at];
    });
  }
  std::vector<Tensor> out(std::max<size_t>(1, node.outputs().size()));
  DECANT_ASSIGN(out[0], make_tensor<double>(x.dtype(), x.dims(), values));
  for (size_t i = 1; i < out.size() && i < 3; ++i) {
    const auto& old = i == 1 ? running_mean : running_variance;
    std::vector<double> list = i == 1 ? mean : variance;
    for (size_t c = 0; c < list.size(); ++c) list[c] = old[c] * momentum + list[c] * (1 - momentum);
    DECANT_ASSIGN(out[i], make_tensor<double>(inputs[3]->dtype(), inputs[3]->dims(), list));
  }
  return out;
}

Status infer_instance_normalization(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_same_dtype(context, 0, 3));
  DECANT_RETURN_IF_ERROR(require_rank(context, 1, 1));
  DECANT_RETURN_IF_ERROR(require_rank(context, 2, 1));
  return infer_same_float(context);
}

/// Each plane by its own mean and variance, then scale and bias of its channel.
EvalResult eval_instance_normalization(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  DECANT_ASSIGN(const Planes p, planes_of(node, x, inputs.subspan(1, 2)));
  const double epsilon = node.float_attribute("epsilon", 1e-5f);
  const std::vector<double> scale = read<double>(*inputs[1]), bias = read<double>(*inputs[2]);
  std::vector<double> values = read<double>(x);
  for (int64_t c = 0; c < p.channels; ++c) {
    const auto at = static_cast<size_t>(c);
    for_channel(p, values, c, [&](std::span<double> plane) {
      double sum = 0, squares = 0;
      for (double v : plane) sum += v;
      const double mean = sum / static_cast<double>(plane.size());
      for (double v : plane) squares += (v - mean) * (v - mean);
      const double factor = scale[at] / std::sqrt(squares / static_cast<double>(plane.size()) + epsilon);
      for (double& v : plane) v = (v - mean) * factor + bias[at];
    });
  }
  return single(make_tensor<double>(x.dtype(), x.dims(), values));
}

}  // namespace

DECANT_OP(BatchNormalization) {
  return {.name = "BatchNormalization",
          .doc = "(x - mean) / deviation * scale + bias by channels",
          .min_inputs = 5,
          .max_inputs = 5,
          .max_outputs = 3,
          .infer = infer_batch_normalization,
          .eval = eval_batch_normalization};
}

DECANT_OP(InstanceNormalization) {
  return {.name = "InstanceNormalization",
          .doc = "Normalizes each plane by its own mean and deviation",
          .min_inputs = 3,
          .max_inputs = 3,
          .infer = infer_instance_normalization,
          .eval = eval_instance_normalization};
}

}  // namespace decant::ir
