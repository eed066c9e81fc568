#include <algorithm>

#include <fmt/format.h>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

/// One axis of a slice, resolved: first index, number of elements, step.
struct Cut {
  int64_t start = 0, count = 0, step = 1;
};

/// ONNX's clamping of start and end for an axis of `length` elements. Precondition: step != 0.
Cut resolve_cut(int64_t length, int64_t start, int64_t end, int64_t step) {
  // Values near the ends of int64 are clamped, so adding the length to a negative one cannot overflow.
  const auto shift = [length](int64_t v) { return v < 0 ? v + length : v; };
  Cut cut;
  if (step > 0) {
    cut.start = std::clamp<int64_t>(shift(start), 0, length);
    const int64_t stop = std::clamp<int64_t>(shift(end), 0, length);
    if (stop > cut.start) cut.count = (stop - cut.start - 1) / step + 1;
  } else {
    cut.start = std::clamp<int64_t>(shift(start), -1, length - 1);
    const int64_t stop = std::clamp<int64_t>(shift(end), -1, length - 1);
    // -(INT64_MIN) does not exist; a step that long takes one element.
    const int64_t stride = step == INT64_MIN ? INT64_MAX : -step;
    if (cut.start > stop) cut.count = (cut.start - stop - 1) / stride + 1;
  }
  cut.step = step;
  return cut;
}

/// Symbolic clamp of a bound to [0, length] for step 1.
Dim clamp_bound(const Graph& graph, const Dim& bound, const Dim& length) {
  if (bound.is_constant() && bound.constant() < 0) return clamp_to_zero(graph, length + bound);
  if (bound.is_constant() && bound.constant() >= INT32_MAX) return length;
  if (!bound.is_constant() && !at_least(graph, bound, 0) && at_least(graph, Dim(-1), bound)) {
    return clamp_to_zero(graph, length + bound);
  }
  return smaller(graph, bound, length);
}

/// Whether the sign of a bound is known, which tells if it counts from the end.
bool has_sign(const Graph& graph, const Dim& bound) {
  return bound.is_constant() || at_least(graph, bound, 0) || at_least(graph, Dim(-1), bound);
}

Dim cut_dim(InferContext& context, const Dim& length, const Dim& start, const Dim& end, int64_t step) {
  const Graph& graph = context.graph();
  if (length.is_constant() && start.is_constant() && end.is_constant()) {
    return resolve_cut(length.constant(), start.constant(), end.constant(), step).count;
  }
  if (step < 0) {
    // A whole axis reversed is the one form that exporters write.
    const bool whole = step == -1 && end.is_constant() && end.constant() <= -INT32_MAX &&
                       start.is_constant() && (start.constant() == -1 || start.constant() >= INT32_MAX);
    return whole ? length : context.fresh_symbol("slice");
  }
  if (!has_sign(graph, start) || !has_sign(graph, end)) return context.fresh_symbol("slice");
  const Dim from = clamp_bound(graph, start, length), to = clamp_bound(graph, end, length);
  const Dim span = clamp_to_zero(graph, to - from);
  return step == 1 ? span : floor_div(span + Dim(step - 1), step);
}

Status infer_slice(InferContext& context) {
  for (size_t i = 1; i < context.input_count(); ++i) {
    DECANT_RETURN_IF_ERROR(require_dtype(context, i, is_index, "an int32 or int64 tensor"));
    DECANT_RETURN_IF_ERROR(require_rank(context, i, 1));
  }
  if (!context.shape(0)) return infer_same(context);
  const Shape input = *context.shape(0);
  const auto starts = context.elements(1), ends = context.elements(2);
  auto axes = context.constant_ints(3);
  const auto steps = context.constant_ints(4);
  const auto count =
      starts ? std::optional(static_cast<int64_t>(starts->size())) : constant_length(context, 1);
  if (!context.has_input(3) && count && *count >= 0 && *count <= static_cast<int64_t>(input.size())) {
    axes.emplace();
    for (int64_t i = 0; i < *count; ++i) axes->push_back(i);
  }
  if (!axes) {  // any axis may be cut
    context.set_output(0, context.dtype(0), context.fresh_shape(input.size(), "slice"));
    return ok_status();
  }
  DECANT_ASSIGN(const auto resolved, resolve_axes(context.node(), *axes, input.size()));
  for (const auto* list : {starts ? &*starts : nullptr, ends ? &*ends : nullptr}) {
    if (list != nullptr && list->size() != resolved.size())
      return context.error("starts, ends and axes differ in length");
  }
  if (steps && steps->size() != resolved.size()) return context.error("steps and axes differ in length");
  Shape out = input;
  const bool known_steps = !context.has_input(4) || steps.has_value();
  for (size_t i = 0; i < resolved.size(); ++i) {
    Dim& d = out[resolved[i]];
    if (!starts || !ends || !known_steps) {
      d = context.fresh_symbol("slice");
      continue;
    }
    const int64_t step = steps ? (*steps)[i] : 1;
    if (step == 0) return context.error("a step is 0");
    d = cut_dim(context, d, (*starts)[i], (*ends)[i], step);
  }
  context.set_output(0, context.dtype(0), std::move(out));

  const auto elements = context.elements(0);
  if (!elements || input.size() != 1 || resolved.size() != 1 || !known_steps || !starts || !ends)
    return ok_status();
  const auto start = (*starts)[0].as_constant(), end = (*ends)[0].as_constant();
  if (!start || !end) return ok_status();
  const Cut cut = resolve_cut(static_cast<int64_t>(elements->size()), *start, *end, steps ? (*steps)[0] : 1);
  std::vector<Dim> picked;
  for (int64_t i = 0; i < cut.count; ++i) {
    picked.push_back((*elements)[static_cast<size_t>(cut.start + i * cut.step)]);
  }
  follow_elements(context, std::move(picked));
  return ok_status();
}

EvalResult eval_slice(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  DECANT_ASSIGN(const Dims starts, read_int_list(node, *inputs[1], "starts"));
  DECANT_ASSIGN(const Dims ends, read_int_list(node, *inputs[2], "ends"));
  Dims axes, steps(starts.size(), 1);
  if (const Tensor* t = optional_input(inputs, 3)) {
    DECANT_ASSIGN(axes, read_int_list(node, *t, "axes"));
  } else {
    for (size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  }
  if (const Tensor* t = optional_input(inputs, 4)) {
    DECANT_ASSIGN(steps, read_int_list(node, *t, "steps"));
  }
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size()) {
    return node_error(node, "starts, ends, axes and steps differ in length");
  }
  DECANT_ASSIGN(const auto resolved, resolve_axes(node, axes, x.rank()));
  Dims dims = x.dims(), strides = strides_of(x.dims());
  int64_t base = 0;
  for (size_t i = 0; i < resolved.size(); ++i) {
    if (steps[i] == 0) return node_error(node, "a step is 0");
    const size_t axis = resolved[i];
    const Cut cut = resolve_cut(x.dims()[axis], starts[i], ends[i], steps[i]);
    dims[axis] = cut.count;
    if (x.elements() == 0 || cut.count == 0) continue;
    base += cut.start * strides[axis];
    strides[axis] = cut.count > 1 ? strides[axis] * cut.step : 0;
  }
  return single(strided_copy(x, dims, strides, base));
}

}  // namespace

DECANT_OP(Slice) {
  return {.name = "Slice",
          .doc = "Every step-th element from start to end, by axis",
          .min_inputs = 3,
          .max_inputs = 5,
          .any_dtype = true,
          .infer = infer_slice,
          .eval = eval_slice};
}

}  // namespace decant::ir
