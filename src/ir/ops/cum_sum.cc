#include "ir/ops/common.h"

namespace decant::ir {
namespace {

Status infer_cum_sum(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_number, "a number tensor"));
  DECANT_RETURN_IF_ERROR(require_dtype(context, 1, is_index, "an integer"));
  return infer_same(context);
}

/// kProduct: running product instead of the sum.
template <bool kProduct>
EvalResult eval_cumulative(const Node& node, EvalInputs inputs) {
  const Tensor &x = *inputs[0], &axis_tensor = *inputs[1];
  if (axis_tensor.elements() != 1 || !is_index(axis_tensor.dtype()))
    return node_error(node, "the axis must be one integer");
  DECANT_ASSIGN(const size_t axis, resolve_axis(node, axis_tensor.int_at(0), x.rank()));
  const bool exclusive = node.int_attribute("exclusive", 0) != 0,
             reverse = node.int_attribute("reverse", 0) != 0;
  const int64_t length = x.dims()[axis];
  if (x.elements() == 0) return single(clone(x));
  const int64_t inner = product(x.dims(), axis + 1, x.rank()), lines = x.elements() / length;
  // Integers wrap, so they are computed in uint64_t.
  const auto run = [&](auto zero) -> EvalResult {
    using C = decltype(zero);
    std::vector<C> values = read<C>(x);
    for (int64_t line = 0; line < lines; ++line) {
      const int64_t base = line / inner * length * inner + line % inner;
      C total = kProduct ? 1 : 0;
      for (int64_t n = 0; n < length; ++n) {
        C& v = values[static_cast<size_t>(base + (reverse ? length - 1 - n : n) * inner)];
        const C before = total;
        total = kProduct ? total * v : total + v;
        v = exclusive ? before : total;
      }
    }
    return single(make_tensor<C>(x.dtype(), x.dims(), values));
  };
  return is_float(x.dtype()) ? run(0.0) : run(uint64_t{0});
}

}  // namespace

DECANT_OP(CumSum) {
  return {.name = "CumSum",
          .doc = "Running sum along an axis; exclusive, reverse",
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = infer_cum_sum,
          .eval = eval_cumulative<false>};
}

DECANT_OP(CumProd) {
  return {.name = "CumProd",
          .doc = "Running product along an axis; exclusive, reverse",
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = infer_cum_sum,
          .eval = eval_cumulative<true>};
}

}  // namespace decant::ir
