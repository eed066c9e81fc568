#include <cmath>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

/// ceil((limit - start) / delta), at least 0. Precondition: delta != 0.
Result<int64_t> range_length(const Node& node, int64_t start, int64_t limit, int64_t delta) {
  const __int128 span = static_cast<__int128>(limit) - start, step = delta;
  if ((step > 0) != (span > 0) || span == 0) return int64_t{0};
  const __int128 count = step > 0 ? (span + step - 1) / step : (span + step + 1) / step;
  if (count > (int64_t{1} << 48)) return node_error(node, "has too many elements");
  return static_cast<int64_t>(count);
}

Result<int64_t> range_length(const Node& node, double start, double limit, double delta) {
  const double count = std::ceil((limit - start) / delta);
  if (!(count < 0x1p48)) return node_error(node, "has too many elements");
  return count > 0 ? static_cast<int64_t>(count) : int64_t{0};
}

Status require_step(const Node& node, const Tensor& delta) {
  if (delta.double_at(0) != 0) return ok_status();
  return node_error(node, "the step is 0");
}

Status infer_range(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_number, "a number"));
  DECANT_RETURN_IF_ERROR(require_same_dtype(context, 0, 3));
  const auto scalar = [&](size_t i) -> std::optional<Dim> {
    const auto list = context.elements(i);
    return list && list->size() == 1 ? std::optional((*list)[0]) : std::nullopt;
  };
  const auto start = scalar(0), limit = scalar(1), delta = scalar(2);
  const auto step = delta ? delta->as_constant() : std::nullopt;
  const Graph& graph = context.graph();
  if (step && *step == 0) return context.error("the step is 0");
  Dim length;
  if (start && limit && step && start->is_constant() && limit->is_constant()) {
    DECANT_ASSIGN(length, range_length(context.node(), start->constant(), limit->constant(), *step));
  } else if (start && limit && step && *step != INT64_MIN) {
    const Dim span = clamp_to_zero(graph, *step > 0 ? *limit - *start : *start - *limit);
    const int64_t stride = *step > 0 ? *step : -*step;
    length = stride == 1 ? span : floor_div(span + Dim(stride - 1), stride);
  } else {
    length = context.fresh_symbol("range");
  }
  const bool constant_floats = [&] {
    if (!is_float(context.dtype(0))) return false;
    for (size_t i = 0; i < 3; ++i) {
      const ConstantPtr& c = context.input(i)->constant;
      if (c == nullptr || !c->in_memory() || c->elements() != 1) return false;
    }
    return true;
  }();
  if (constant_floats) {
    const auto value = [&](size_t i) { return context.input(i)->constant->tensor().double_at(0); };
    if (value(2) == 0) return context.error("the step is 0");
    DECANT_ASSIGN(length, range_length(context.node(), value(0), value(1), value(2)));
  }
  context.set_output(0, context.dtype(0), Shape{length});
  if (start && step && length.is_constant() &&
      length.constant() <= static_cast<int64_t>(kMaxFollowedElements)) {
    std::vector<Dim> elements;
    for (int64_t i = 0; i < length.constant(); ++i) elements.push_back(*start + Dim(i) * Dim(*step));
    follow_elements(context, std::move(elements));
  }
  return ok_status();
}

EvalResult eval_range(const Node& node, EvalInputs inputs) {
  for (const Tensor* t : inputs) {
    if (t->elements() != 1 || t->dtype() != inputs[0]->dtype() || !is_number(t->dtype())) {
      return node_error(node, "needs three scalars of one number type");
    }
  }
  DECANT_RETURN_IF_ERROR(require_step(node, *inputs[2]));
  const auto fill = [&](auto zero) -> EvalResult {
    using C = decltype(zero);
    const C start = read<C>(*inputs[0])[0], limit = read<C>(*inputs[1])[0], delta = read<C>(*inputs[2])[0];
    DECANT_ASSIGN(const int64_t length, range_length(node, start, limit, delta));
    DECANT_ASSIGN(Tensor out, Tensor::allocate(inputs[0]->dtype(), {length}));
    for (int64_t i = 0; i < length; ++i) {
      // start + i * delta lies between start and limit, so it fits.
      const C value = start + static_cast<C>(i) * delta;
      write_range<C>(out, i, std::span<const C>(&value, 1));
    }
    return single(std::move(out));
  };
  return is_float(inputs[0]->dtype()) ? fill(0.0) : fill(int64_t{0});
}

}  // namespace

DECANT_OP(Range) {
  return {.name = "Range",
          .doc = "start, start + delta, ... before limit",
          .min_inputs = 3,
          .max_inputs = 3,
          .infer = infer_range,
          .eval = eval_range};
}

}  // namespace decant::ir
