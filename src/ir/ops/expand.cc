#include <algorithm>

#include <fmt/format.h>

#include "base/checked.h"
#include "ir/ops/common.h"

namespace decant::ir {
namespace {

Status infer_expand(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 1, is_index, "an int64 tensor"));
  DECANT_RETURN_IF_ERROR(require_rank(context, 1, 1));
  std::optional<Shape> shape;
  if (const auto target = context.elements(1)) {
    for (const Dim& d : *target) {
      if (d.is_constant() && d.constant() < 0)
        return context.error(fmt::format("cannot expand to {}", d.constant()));
    }
    if (context.shape(0)) {
      DECANT_ASSIGN(shape, broadcast_shapes(context, *context.shape(0), *target));
    }
  } else if (const auto rank = constant_length(context, 1);
             rank && *rank >= 0 && *rank <= 64 && context.shape(0)) {
    Shape out = context.fresh_shape(std::max(static_cast<size_t>(*rank), context.shape(0)->size()), "expand");
    const Shape& in = *context.shape(0);
    const size_t pad = out.size() - in.size();
    for (size_t i = 0; i < in.size(); ++i) {
      // Dims over 1, and those that the target does not reach, stay.
      const bool reached = pad + i + static_cast<size_t>(*rank) >= out.size();
      if (!reached || at_least(context.graph(), in[i], 2)) out[pad + i] = in[i];
    }
    shape = std::move(out);
  }
  context.set_output(0, context.dtype(0), std::move(shape));
  const Value* out = context.node().output(0);
  if (auto elements = context.elements(0);
      elements && out != nullptr && out->shape && out->shape->size() <= 1) {
    const auto count = out->shape->empty() ? std::optional<int64_t>(1) : (*out->shape)[0].as_constant();
    if (count && elements->size() == 1 && *count >= 0 &&
        *count <= static_cast<int64_t>(kMaxFollowedElements)) {
      elements->assign(static_cast<size_t>(*count), Dim((*elements)[0]));
    }
    follow_elements(context, *std::move(elements));
  }
  return ok_status();
}

EvalResult eval_expand(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  DECANT_ASSIGN(const Dims target, read_int_list(node, *inputs[1], "the shape"));
  const auto dims = broadcast_dims(x.dims(), target);
  if (!dims) return node_error(node, fmt::format("{} does not expand to the shape", describe(x)));
  return single(strided_copy(x, *dims, broadcast_strides(x.dims(), *dims), 0));
}

Status infer_tile(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 1, is_index, "an int64 tensor"));
  DECANT_RETURN_IF_ERROR(require_rank(context, 1, 1));
  const auto repeats = context.elements(1);
  if (!context.shape(0)) {
    std::optional<Shape> shape;
    if (repeats) shape = context.fresh_shape(repeats->size(), "tile");
    context.set_output(0, context.dtype(0), std::move(shape));
    return ok_status();
  }
  Shape out = *context.shape(0);
  if (repeats && repeats->size() != out.size()) return context.error("one repeat for each axis is needed");
  for (size_t i = 0; i < out.size(); ++i) {
    if (repeats && (*repeats)[i].is_constant() && (*repeats)[i].constant() < 0) {
      return context.error("a repeat is negative");
    }
    out[i] = repeats ? out[i] * (*repeats)[i] : context.fresh_symbol("tile");
  }
  context.set_output(0, context.dtype(0), std::move(out));
  const auto elements = context.elements(0);
  if (elements && repeats && repeats->size() == 1 && (*repeats)[0].is_constant()) {
    const int64_t times = (*repeats)[0].constant();
    std::vector<Dim> all;
    for (int64_t i = 0; i < times && all.size() <= kMaxFollowedElements && !elements->empty(); ++i) {
      all.insert(all.end(), elements->begin(), elements->end());
    }
    follow_elements(context, std::move(all));
  }
  return ok_status();
}

EvalResult eval_tile(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  DECANT_ASSIGN(const Dims repeats, read_int_list(node, *inputs[1], "the repeats"));
  if (repeats.size() != x.rank()) return node_error(node, "one repeat for each axis is needed");
  // Each axis becomes two: the repeats, which do not move in the source, and the axis itself.
  const Dims own = strides_of(x.dims());
  Dims wide, strides, dims;
  for (size_t i = 0; i < repeats.size(); ++i) {
    wide.insert(wide.end(), {repeats[i], x.dims()[i]});
    strides.insert(strides.end(), {0, own[i]});
    int64_t size = 0;
    if (repeats[i] < 0 || __builtin_mul_overflow(repeats[i], x.dims()[i], &size)) {
      return node_error(node, "a repeat is negative or too large");
    }
    dims.push_back(size);
  }
  if (!checked_elements(wide)) return node_error(node, "the result is too large");
  DECANT_ASSIGN(const Tensor out, strided_copy(x, wide, strides, 0));
  return single(out.reshaped(std::move(dims)));
}

}  // namespace

DECANT_OP(Expand) {
  return {.name = "Expand",
          .doc = "Broadcasts x to a shape (both ways)",
          .min_inputs = 2,
          .max_inputs = 2,
          .any_dtype = true,
          .infer = infer_expand,
          .eval = eval_expand};
}

DECANT_OP(Tile) {
  return {.name = "Tile",
          .doc = "Repeats x along each axis",
          .min_inputs = 2,
          .max_inputs = 2,
          .any_dtype = true,
          .infer = infer_tile,
          .eval = eval_tile};
}

}  // namespace decant::ir
