#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

enum Input : size_t { kX, kRouter, kIn, kInBias, kOut, kOutBias, kUp, kUpBias, kWeights };

Status infer_experts(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, kX, is_float, "a float tensor"));
  for (size_t i = kRouter; i < context.input_count(); ++i)
    DECANT_RETURN_IF_ERROR(require_dtype(context, i, is_float, "a float tensor"));
  if (!context.has_input(kIn) || !context.has_input(kOut))
    return context.error("needs two stacks of weights");
  return infer_same_float(context);
}

double activate(const std::string& kind, double v) {
  if (kind == "relu") return std::max(v, 0.0);
  if (kind == "gelu") return 0.5 * v * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
  if (kind == "silu") return v / (1 + std::exp(-v));
  return v;
}

/// y[n] = bias[n] + sum_k weights[expert, n, k] x[k].
std::vector<double> project(const Tensor& weights, const Tensor* bias, int64_t expert,
                            const std::vector<double>& x) {
  const int64_t n = weights.dims()[1], k = weights.dims()[2];
  std::vector<double> w(static_cast<size_t>(n * k)), y(static_cast<size_t>(n), 0.0);
  read_range<double>(weights, expert * n * k, std::span<double>(w));
  if (bias) read_range<double>(*bias, expert * n, std::span<double>(y));
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t l = 0; l < k; ++l)
      y[static_cast<size_t>(i)] += w[static_cast<size_t>(i * k + l)] * x[static_cast<size_t>(l)];
  }
  return y;
}

/// Each row of x goes through the k experts that its row of router logits ranks first, weighted by the
/// softmax of the logits (or by input 8), which is normalized over the k when normalize_routing_weights is
/// set. An expert is out(act(in(x))), weights [experts, out, in]. activation_type swiglu: g * sigmoid(alpha
/// g) * (u + beta) with g and u clamped by swiglu_limit; they are the results of `in` and `up` (swiglu_fusion
/// 0), or alternate in `in`'s (1), or are its halves (2). gelu is the tanh form. As com.microsoft MoE in ONNX
/// Runtime.
EvalResult eval_experts(const Node& node, EvalInputs inputs) {
  const Tensor &x = *inputs[kX], &router = *inputs[kRouter], &in = *inputs[kIn], &out = *inputs[kOut];
  const auto given = [&](size_t i) { return optional_input(inputs, i); };
  const int64_t k = node.int_attribute("k", 1), fusion = node.int_attribute("swiglu_fusion", 0);
  const std::string kind = node.string_attribute("activation_type", "relu");
  const bool swiglu = kind == "swiglu";
  if (in.rank() != 3 || out.rank() != 3 || router.rank() != 2 || x.rank() < 1)
    return node_error(node, "weights must have rank 3 and router logits rank 2");
  const int64_t hidden = x.dims().back(), experts = in.dims()[0], width = in.dims()[1], inner = out.dims()[2];
  const int64_t rows = hidden ? x.elements() / hidden : 0;
  const bool fused = swiglu && fusion != 0;
  if (in.dims()[2] != hidden || out.dims()[0] != experts || out.dims()[1] != hidden ||
      width != (fused ? 2 * inner : inner) || router.dims() != Dims{rows, experts} || k < 1 || k > experts) {
    return node_error(
        node, fmt::format("{}, {} and router {} do not fit", describe(in), describe(out), describe(router)));
  }
  const Tensor* up = given(kUp);
  if (swiglu && !fused && !up)
    return node_error(node, "swiglu without fusion needs a third stack of weights");
  if (up && up->dims() != in.dims())
    return node_error(node, fmt::format("{} does not fit {}", describe(*up), describe(in)));
  for (const auto& [i, n] :
       {std::pair{kInBias, width}, std::pair{kOutBias, hidden}, std::pair{kUpBias, width}}) {
    if (given(i) && given(i)->elements() != experts * n)
      return node_error(node, fmt::format("bias {} does not fit", describe(*given(i))));
  }
  const Tensor* mixing = given(kWeights);
  if (mixing && mixing->dims() != router.dims())
    return node_error(node, "router weights do not fit the logits");
  const double alpha = node.float_attribute("activation_alpha", 1.0f),
               beta = node.float_attribute("activation_beta", 0.0f);
  const double limit = node.float_attribute("swiglu_limit", std::numeric_limits<float>::infinity());
  const bool normalize = node.int_attribute("normalize_routing_weights", 0) != 0;

  const std::vector<double> data = read<double>(x), logits = read<double>(router);
  std::vector<double> result(data.size(), 0.0);
  for (int64_t row = 0; row < rows; ++row) {
    const double* score = logits.data() + row * experts;
    std::vector<int64_t> order(static_cast<size_t>(experts));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return score[a] > score[b]; });
    double all = 0, chosen = 0;
    for (int64_t e = 0; e < experts; ++e) all += std::exp(score[e] - score[order[0]]);
    std::vector<double> share(static_cast<size_t>(k));
    for (int64_t i = 0; i < k; ++i) {
      const int64_t e = order[static_cast<size_t>(i)];
      share[static_cast<size_t>(i)] =
          mixing ? mixing->double_at(row * experts + e) : std::exp(score[e] - score[order[0]]) / all;
      chosen += share[static_cast<size_t>(i)];
    }
    const std::vector<double> token(data.begin() + row * hidden, data.begin() + (row + 1) * hidden);
    for (int64_t i = 0; i < k; ++i) {
      const int64_t e = order[static_cast<size_t>(i)];
      const std::vector<double> first = project(in, given(kInBias), e, token);
      std::vector<double> second;
      if (up) second = project(*up, given(kUpBias), e, token);
      std::vector<double> h(static_cast<size_t>(inner));
      for (int64_t j = 0; j < inner; ++j) {
        const auto at = static_cast<size_t>(j);
        if (!swiglu) {
          h[at] = activate(kind, first[at]) * (up ? second[at] : 1.0);
          continue;
        }
        double g = first[fused && fusion == 1 ? 2 * at : at];
        double u = !fused ? second[at] : first[fusion == 1 ? 2 * at + 1 : at + static_cast<size_t>(inner)];
        g = std::min(g, limit);
        u = std::clamp(u, -limit, limit);
        h[at] = g / (1 + std::exp(-alpha * g)) * (u + beta);
      }
      const std::vector<double> y = project(out, given(kOutBias), e, h);
      const double weight = share[static_cast<size_t>(i)] / (normalize ? chosen : 1.0);
      for (int64_t j = 0; j < hidden; ++j)
        result[static_cast<size_t>(row * hidden + j)] += weight * y[static_cast<size_t>(j)];
    }
  }
  return single(make_tensor<double>(x.dtype(), x.dims(), result));
}

}  // namespace

DECANT_OP(MixtureOfExperts) {
  return {.name = "MixtureOfExperts",
          .domain = "decant",
          .doc = "Feed-forward experts, k of them for each row by its router logits",
          .min_inputs = 5,
          .max_inputs = 9,
          .infer = infer_experts,
          .eval = eval_experts};
}

}  // namespace decant::ir
