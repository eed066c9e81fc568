#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

/// Shape of the loss: a scalar, or with reduction = none that of the targets.
Status infer_loss(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_float, "a float tensor"));
  DECANT_RETURN_IF_ERROR(require_dtype(context, 1, is_index, "an integer tensor"));
  DECANT_RETURN_IF_ERROR(require_dtype(context, 2, is_float, "a float tensor"));
  DECANT_RETURN_IF_ERROR(require_rank(context, 2, 1));
  const std::string reduction = context.node().string_attribute("reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean") {
    return context.error("reduction must be none, sum or mean");
  }
  if (context.shape(0) && context.shape(0)->size() < 2)
    return context.error("scores must have rank 2 or more");
  if (reduction == "none") {
    context.set_output(0, context.dtype(0), context.shape(1));
  } else {
    context.set_output(0, context.dtype(0), Shape{});
  }
  context.set_output(1, context.dtype(0), context.shape(0));  // of SoftmaxCrossEntropyLoss
  return ok_status();
}

/// Negative log likelihood of log probabilities [n, classes, inner...] for targets [n, inner...].
Result<Tensor> likelihood_loss(const Node& node, EvalInputs inputs,
                               const std::vector<double>& log_probabilities) {
  const Tensor &scores = *inputs[0], &targets = *inputs[1];
  const Tensor* weight = optional_input(inputs, 2);
  if (scores.rank() < 2 || targets.rank() + 1 != scores.rank() || !is_index(targets.dtype())) {
    return node_error(node, "needs scores [n, classes, ...] and integer targets [n, ...]");
  }
  const int64_t classes = scores.dims()[1], inner = product(scores.dims(), 2, scores.rank());
  Dims dims = scores.dims();
  dims.erase(dims.begin() + 1);
  if (targets.dims() != dims) return node_error(node, "the targets' shape does not fit that of the scores");
  if (weight && weight->elements() != classes) return node_error(node, "needs one weight for each class");
  const std::vector<double> weights =
      weight ? read<double>(*weight) : std::vector<double>(static_cast<size_t>(classes), 1.0);
  const int64_t* ignored = node.attribute<int64_t>("ignore_index");
  const std::string reduction = node.string_attribute("reduction", "mean");
  std::vector<double> losses(static_cast<size_t>(targets.elements()), 0.0);
  double total = 0, total_weight = 0;
  for (int64_t i = 0; i < targets.elements(); ++i) {
    const int64_t target = targets.int_at(i);
    if (ignored && target == *ignored) continue;
    if (target < 0 || target >= classes) return node_error(node, "a target is outside the classes");
    const int64_t at = (i / inner * classes + target) * inner + i % inner;
    const double w = weights[static_cast<size_t>(target)];
    losses[static_cast<size_t>(i)] = -log_probabilities[static_cast<size_t>(at)] * w;
    total += losses[static_cast<size_t>(i)];
    total_weight += w;
  }
  if (reduction == "none") return make_tensor<double>(scores.dtype(), dims, losses);
  return make_tensor<double>(scores.dtype(), {}, {reduction == "sum" ? total : total / total_weight});
}

EvalResult eval_likelihood_loss(const Node& node, EvalInputs inputs) {
  if (!is_float(inputs[0]->dtype())) return node_error(node, "needs float log probabilities");
  return single(likelihood_loss(node, inputs, read<double>(*inputs[0])));
}

/// Log softmax along axis 1, in place.
void log_softmax(std::vector<double>& values, int64_t classes, int64_t inner) {
  const int64_t lines = static_cast<int64_t>(values.size()) / classes;
  for (int64_t line = 0; line < lines; ++line) {
    const int64_t base = line / inner * classes * inner + line % inner;
    const auto at = [&](int64_t c) -> double& { return values[static_cast<size_t>(base + c * inner)]; };
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t c = 0; c < classes; ++c) largest = std::max(largest, at(c));
    for (int64_t c = 0; c < classes; ++c) sum += std::exp(at(c) - largest);
    for (int64_t c = 0; c < classes; ++c) at(c) -= largest + std::log(sum);
  }
}

EvalResult eval_cross_entropy_loss(const Node& node, EvalInputs inputs) {
  const Tensor& scores = *inputs[0];
  if (!is_float(scores.dtype()) || scores.rank() < 2)
    return node_error(node, "needs float scores [n, classes, ...]");
  std::vector<double> values = read<double>(scores);
  if (!values.empty()) log_softmax(values, scores.dims()[1], product(scores.dims(), 2, scores.rank()));
  std::vector<Tensor> out(std::max<size_t>(1, node.outputs().size()));
  DECANT_ASSIGN(out[0], likelihood_loss(node, inputs, values));
  if (out.size() > 1) {
    DECANT_ASSIGN(out[1], make_tensor<double>(scores.dtype(), scores.dims(), values));
  }
  return out;
}

}  // namespace

DECANT_OP(NegativeLogLikelihoodLoss) {
  return {.name = "NegativeLogLikelihoodLoss",
          .doc = "-log probability of the target class, weighted; reduction = none | sum | mean",
          .min_inputs = 2,
          .max_inputs = 3,
          .infer = infer_loss,
          .eval = eval_likelihood_loss};
}

DECANT_OP(SoftmaxCrossEntropyLoss) {
  return {.name = "SoftmaxCrossEntropyLoss",
          .doc = "NegativeLogLikelihoodLoss of LogSoftmax; also gives the log probabilities",
          .min_inputs = 2,
          .max_inputs = 3,
          .max_outputs = 2,
          .infer = infer_loss,
          .eval = eval_cross_entropy_loss};
}

}  // namespace decant::ir
