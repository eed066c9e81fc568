#include <fmt/format.h>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

Status infer_cast_to(InferContext& context, DType to) {
  context.set_output(0, to, context.shape(0));
  auto elements = context.elements(0);
  if (!elements || is_float(context.dtype(0)) || is_float(to)) return ok_status();
  const IntegerRange range = integer_range(to);
  for (Dim& e : *elements) {
    if (to == DType::kBool) {
      if (e.is_constant())
        e = Dim(e.constant() != 0 ? 1 : 0);
      else if (at_least(context.graph(), e, 1))
        e = Dim(1);
      else
        return ok_status();
    } else if (e.is_constant() && (e.constant() < range.min || e.constant() > range.max)) {
      return ok_status();  // wraps
    }
  }
  follow_elements(context, std::move(*elements));
  return ok_status();
}

EvalResult cast_tensor(const Tensor& x, DType to) {
  if (x.dtype() == to) return single(x);
  return with_compute_type(x.dtype(), [&](auto tag) -> EvalResult {
    using C = typename decltype(tag)::type;
    return single(make_tensor<C>(to, x.dims(), read<C>(x)));
  });
}

}  // namespace

DECANT_OP(Cast) {
  return {
      .name = "Cast",
      .doc = "Converts to the type of attribute `to`",
      .min_inputs = 1,
      .max_inputs = 1,
      .infer = [](InferContext& context) -> Status {
        const int64_t code = context.node().int_attribute("to", 0);
        const DType to = dtype_from_onnx_code(code);
        if (to == DType::kUndefined)
          return unsupported(fmt::format("{}: cannot cast to ONNX type {}", context.node().describe(), code));
        return infer_cast_to(context, to);
      },
      .eval = [](const Node& node, EvalInputs inputs) -> EvalResult {
        const DType to = dtype_from_onnx_code(node.int_attribute("to", 0));
        if (to == DType::kUndefined) return node_error(node, "has no known target type");
        return cast_tensor(*inputs[0], to);
      }};
}

DECANT_OP(CastLike) {
  return {.name = "CastLike",
          .doc = "Converts to the type of the second input",
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = [](InferContext& context) -> Status { return infer_cast_to(context, context.dtype(1)); },
          .eval = [](const Node&, EvalInputs inputs) -> EvalResult {
            return cast_tensor(*inputs[0], inputs[1]->dtype());
          }};
}

}  // namespace decant::ir
