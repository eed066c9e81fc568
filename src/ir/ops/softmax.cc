#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

Status infer_softmax(InferContext& context) {
  if (context.shape(0)) {
    DECANT_ASSIGN(
        [[maybe_unused]] const size_t axis,
        resolve_axis(context.node(), context.node().int_attribute("axis", -1), context.shape(0)->size()));
  }
  return infer_same_float(context);
}

template <bool kLog>
EvalResult eval_softmax(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  if (!is_float(x.dtype())) return node_error(node, "needs a float tensor");
  DECANT_ASSIGN(const size_t axis, resolve_axis(node, node.int_attribute("axis", -1), x.rank()));
  std::vector<double> values = read<double>(x);
  const int64_t length = x.dims()[axis];
  if (!values.empty()) {
    const int64_t inner = product(x.dims(), axis + 1, x.rank()), lines = x.elements() / length;
    for (int64_t line = 0; line < lines; ++line) {
      const int64_t base = line / inner * length * inner + line % inner;
      const auto at = [&](int64_t n) -> double& { return values[static_cast<size_t>(base + n * inner)]; };
      double largest = -std::numeric_limits<double>::infinity(), sum = 0;
      for (int64_t n = 0; n < length; ++n) largest = std::max(largest, at(n));
      for (int64_t n = 0; n < length; ++n) sum += std::exp(at(n) - largest);
      for (int64_t n = 0; n < length; ++n) {
        at(n) = kLog ? at(n) - largest - std::log(sum) : std::exp(at(n) - largest) / sum;
      }
    }
  }
  return single(make_tensor<double>(x.dtype(), x.dims(), values));
}

/// 1 at the first largest element of each line, 0 elsewhere.
EvalResult eval_hardmax(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  if (!is_float(x.dtype())) return node_error(node, "needs a float tensor");
  DECANT_ASSIGN(const size_t axis, resolve_axis(node, node.int_attribute("axis", -1), x.rank()));
  const std::vector<double> values = read<double>(x);
  std::vector<double> out(values.size(), 0.0);
  const int64_t length = x.dims()[axis];
  if (!values.empty()) {
    const int64_t inner = product(x.dims(), axis + 1, x.rank()), lines = x.elements() / length;
    for (int64_t line = 0; line < lines; ++line) {
      const int64_t base = line / inner * length * inner + line % inner;
      const auto at = [&](int64_t n) { return static_cast<size_t>(base + n * inner); };
      int64_t best = 0;
      for (int64_t n = 1; n < length; ++n) {
        if (values[at(n)] > values[at(best)]) best = n;
      }
      out[at(best)] = 1;
    }
  }
  return single(make_tensor<double>(x.dtype(), x.dims(), out));
}

}  // namespace

DECANT_OP(Hardmax) {
  return {.name = "Hardmax",
          .doc = "1 at the first largest element along `axis`, 0 elsewhere",
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = infer_softmax,
          .eval = eval_hardmax};
}

DECANT_OP(Softmax) {
  return {.name = "Softmax",
          .doc = "e^x over its sum along `axis`",
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = infer_softmax,
          .eval = eval_softmax<false>};
}

DECANT_OP(LogSoftmax) {
  return {.name = "LogSoftmax",
          .doc = "Logarithm of Softmax",
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = infer_softmax,
          .eval = eval_softmax<true>};
}

}  // namespace decant::ir
