#include <cmath>

#include "ir/ops/map_float.h"

namespace decant::ir {
namespace {

double elu(double x, double alpha) { return x < 0 ? alpha * std::expm1(x) : x; }

OpDef activation(std::string_view name, std::string_view doc, EvalResult (*eval)(const Node&, EvalInputs)) {
  return {
      .name = name, .doc = doc, .min_inputs = 1, .max_inputs = 1, .infer = infer_same_float, .eval = eval};
}

Status infer_prelu(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_number, "a number tensor"));
  DECANT_RETURN_IF_ERROR(require_same_dtype(context, 0, 2));
  return infer_same(context);
}

/// x below 0 times the slope, which broadcasts to x.
EvalResult eval_prelu(const Node& node, EvalInputs inputs) {
  const Tensor &x = *inputs[0], &slope = *inputs[1];
  if (!is_number(x.dtype()) || x.dtype() != slope.dtype())
    return node_error(node, "needs two number tensors");
  const auto dims = broadcast_dims(slope.dims(), x.dims());
  if (!dims || *dims != x.dims()) return node_error(node, "the slope does not broadcast to the input");
  return with_compute_type(x.dtype(), [&](auto tag) -> EvalResult {
    using C = typename decltype(tag)::type;
    std::vector<C> values = read<C>(x);
    const std::vector<C> slopes = read<C>(slope);
    for_each_index<1>(x.dims(), {broadcast_strides(slope.dims(), x.dims())},
                      [&](int64_t i, const std::array<int64_t, 1>& at) {
                        C& v = values[static_cast<size_t>(i)];
                        const C s = slopes[static_cast<size_t>(at[0])];
                        if constexpr (std::is_same_v<C, double>) {
                          if (v < 0) v *= s;
                        } else if constexpr (std::is_same_v<C, int64_t>) {
                          if (v < 0) v = static_cast<C>(static_cast<uint64_t>(v) * static_cast<uint64_t>(s));
                        }
                      });
    return single(make_tensor<C>(x.dtype(), x.dims(), values));
  });
}

Status infer_shrink(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_number, "a number tensor"));
  return infer_same(context);
}

/// x + bias below -lambd, x - bias above lambd, 0 between.
EvalResult eval_shrink(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  if (!is_number(x.dtype())) return node_error(node, "needs a number tensor");
  const double bias = node.float_attribute("bias", 0.0f), edge = node.float_attribute("lambd", 0.5f);
  std::vector<double> values = read<double>(x);
  for (double& v : values) v = v < -edge ? v + bias : v > edge ? v - bias : 0;
  return single(make_tensor<double>(x.dtype(), x.dims(), values));
}

}  // namespace

DECANT_OP(Elu) {
  return activation("Elu", "alpha * (e^x - 1) below 0, else x", [](const Node& node, EvalInputs inputs) {
    const double alpha = node.float_attribute("alpha", 1.0f);
    return map_float(node, inputs, [=](double x) { return elu(x, alpha); });
  });
}

DECANT_OP(Celu) {
  return activation("Celu", "max(0, x) + min(0, alpha * (e^(x / alpha) - 1))",
                    [](const Node& node, EvalInputs inputs) -> EvalResult {
                      const double alpha = node.float_attribute("alpha", 1.0f);
                      if (alpha == 0) return node_error(node, "alpha is 0");
                      return map_float(node, inputs, [=](double x) {
                        return std::isnan(x) ? x
                                             : std::fmax(0, x) + std::fmin(0, alpha * std::expm1(x / alpha));
                      });
                    });
}

DECANT_OP(Selu) {
  return activation("Selu", "gamma * Elu", [](const Node& node, EvalInputs inputs) {
    const double alpha = node.float_attribute("alpha", 1.67326319217681884765625f),
                 gamma = node.float_attribute("gamma", 1.05070102214813232421875f);
    return map_float(node, inputs, [=](double x) { return gamma * elu(x, alpha); });
  });
}

DECANT_OP(LeakyRelu) {
  return activation("LeakyRelu", "alpha * x below 0, else x", [](const Node& node, EvalInputs inputs) {
    const double alpha = node.float_attribute("alpha", 0.01f);
    return map_float(node, inputs, [=](double x) { return x < 0 ? alpha * x : x; });
  });
}

DECANT_OP(ThresholdedRelu) {
  return activation("ThresholdedRelu", "x above alpha, else 0", [](const Node& node, EvalInputs inputs) {
    const double alpha = node.float_attribute("alpha", 1.0f);
    return map_float(node, inputs, [=](double x) { return std::isnan(x) || x > alpha ? x : 0.0; });
  });
}

DECANT_OP(HardSigmoid) {
  return activation(
      "HardSigmoid", "max(0, min(1, alpha * x + beta))", [](const Node& node, EvalInputs inputs) {
        const double alpha = node.float_attribute("alpha", 0.2f), beta = node.float_attribute("beta", 0.5f);
        return map_float(node, inputs, [=](double x) {
          return std::isnan(x) ? x : std::fmax(0, std::fmin(1, alpha * x + beta));
        });
      });
}

DECANT_OP(PRelu) {
  return {.name = "PRelu",
          .doc = "slope * x below 0, else x; the slope broadcasts to x",
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = infer_prelu,
          .eval = eval_prelu};
}

DECANT_OP(Shrink) {
  return {.name = "Shrink",
          .doc = "x + bias below -lambd, x - bias above lambd, else 0",
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = infer_shrink,
          .eval = eval_shrink};
}

}  // namespace decant::ir
