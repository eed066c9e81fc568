#include "ir/ops/common.h"

namespace decant::ir {
namespace {

Status infer_clip(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_number, "a number tensor"));
  DECANT_RETURN_IF_ERROR(require_same_dtype(context, 0, context.input_count()));
  return infer_same(context);
}

/// min(max(x, low), high): a low over high gives high. NaN stays.
EvalResult eval_clip(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  const Tensor *low = optional_input(inputs, 1), *high = optional_input(inputs, 2);
  for (const Tensor* bound : {low, high}) {
    if (bound != nullptr && (bound->elements() != 1 || bound->dtype() != x.dtype())) {
      return node_error(node, "bounds must be scalars of the input's type");
    }
  }
  return with_compute_type(x.dtype(), [&](auto tag) -> EvalResult {
    using C = typename decltype(tag)::type;
    std::vector<C> values = read<C>(x);
    const std::vector<C> min = low != nullptr ? read<C>(*low) : std::vector<C>();
    const std::vector<C> max = high != nullptr ? read<C>(*high) : std::vector<C>();
    for (C& v : values) {
      if (!min.empty() && v < min[0]) v = min[0];
      if (!max.empty() && v > max[0]) v = max[0];
    }
    return single(make_tensor<C>(x.dtype(), x.dims(), values));
  });
}

}  // namespace

DECANT_OP(Clip) {
  return {.name = "Clip",
          .doc = "Cuts x to [min, max], either may be left out",
          .min_inputs = 1,
          .max_inputs = 3,
          .infer = infer_clip,
          .eval = eval_clip};
}

}  // namespace decant::ir
