#include <algorithm>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

/// Half-open range of axes that Shape's start and end attributes name; both are cut to the rank.
std::pair<size_t, size_t> shape_range(const Node& node, size_t rank) {
  const auto r = static_cast<int64_t>(rank);
  const auto cut = [r](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + r : v, 0, r); };
  const int64_t start = cut(node.int_attribute("start", 0));
  const int64_t end = cut(node.int_attribute("end", r));
  return {static_cast<size_t>(start), static_cast<size_t>(std::max(start, end))};
}

Status infer_shape(InferContext& context) {
  if (!context.shape(0)) {
    context.set_output(0, DType::kInt64, context.fresh_shape(1, "rank"));
    return ok_status();
  }
  const Shape shape = *context.shape(0);
  const auto [start, end] = shape_range(context.node(), shape.size());
  context.set_output(0, DType::kInt64, Shape{Dim(static_cast<int64_t>(end - start))});
  follow_elements(context, std::vector<Dim>(shape.begin() + static_cast<std::ptrdiff_t>(start),
                                            shape.begin() + static_cast<std::ptrdiff_t>(end)));
  return ok_status();
}

EvalResult eval_shape(const Node& node, EvalInputs inputs) {
  const auto& dims = inputs[0]->dims();
  const auto [start, end] = shape_range(node, dims.size());
  return single(Tensor::vector(std::span<const int64_t>(dims).subspan(start, end - start)));
}

}  // namespace

DECANT_OP(Shape) {
  return {.name = "Shape",
          .doc = "The dims [start, end) of x",
          .min_inputs = 1,
          .max_inputs = 1,
          .any_dtype = true,
          .infer = infer_shape,
          .eval = eval_shape};
}

DECANT_OP(Size) {
  return {.name = "Size",
          .doc = "The number of elements of x",
          .min_inputs = 1,
          .max_inputs = 1,
          .any_dtype = true,
          .infer = [](InferContext& context) -> Status {
            const auto shape = context.shape(0);
            context.set_output(0, DType::kInt64, Shape{});
            if (shape) follow_elements(context, {element_count(*shape)});
            return ok_status();
          },
          .eval = [](const Node&, EvalInputs inputs) -> EvalResult {
            return single(Tensor::scalar(inputs[0]->elements()));
          }};
}

DECANT_OP(Identity) {
  return {.name = "Identity",
          .doc = "x",
          .min_inputs = 1,
          .max_inputs = 1,
          .any_dtype = true,
          .infer = [](InferContext& context) -> Status {
            context.set_output(0, context.dtype(0), context.shape(0), context.kind(0));
            if (auto elements = context.elements(0)) follow_elements(context, *std::move(elements));
            return ok_status();
          },
          .eval = [](const Node&, EvalInputs inputs) -> EvalResult { return single(*inputs[0]); },
          .eval_data = [](const Node&, std::span<const Datum* const> inputs) -> Result<std::vector<Datum>> {
            return std::vector<Datum>{*inputs[0]};
          }};
}

}  // namespace decant::ir
