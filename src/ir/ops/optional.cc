#include "ir/ops/common.h"

namespace decant::ir {
namespace {

using DataInputs = std::span<const Datum* const>;
using DataResult = Result<std::vector<Datum>>;

DataResult one(Datum datum) {
  std::vector<Datum> out;
  out.push_back(std::move(datum));
  return out;
}

Status infer_optional(InferContext& context) {
  if (context.input_count() > 0 && context.has_input(0)) {
    const ValueKind kind = is_sequence(context.kind(0)) ? ValueKind::kOptionalSequence : ValueKind::kOptional;
    context.set_output(0, context.dtype(0), context.shape(0), kind);
    return ok_status();
  }
  const auto* type = context.node().attribute<TypeAttribute>("type");
  if (type == nullptr) return context.error("without an input, attribute 'type' says what is left out");
  context.set_output(0, type->dtype, std::nullopt,
                     is_sequence(type->kind) ? ValueKind::kOptionalSequence : ValueKind::kOptional);
  return ok_status();
}

}  // namespace

DECANT_OP(Optional) {
  return {.name = "Optional",
          .doc = "An optional with the input, or an empty one of attribute `type`",
          .min_inputs = 0,
          .max_inputs = 1,
          .any_dtype = true,
          .infer = infer_optional,
          .eval_data = [](const Node&, DataInputs inputs) -> DataResult {
            return one(inputs.empty() || inputs[0] == nullptr ? Datum() : *inputs[0]);
          }};
}

DECANT_OP(OptionalGetElement) {
  return {.name = "OptionalGetElement",
          .doc = "What an optional holds; tensors and sequences as they are",
          .min_inputs = 1,
          .max_inputs = 1,
          .any_dtype = true,
          .infer = [](InferContext& context) -> Status {
            const ValueKind kind = is_sequence(context.kind(0)) ? ValueKind::kSequence : ValueKind::kTensor;
            context.set_output(0, context.dtype(0), context.shape(0), kind);
            return ok_status();
          },
          .eval_data = [](const Node& node, DataInputs inputs) -> DataResult {
            if (inputs[0]->is_empty()) return node_error(node, "the optional has no element");
            return one(*inputs[0]);
          }};
}

DECANT_OP(OptionalHasElement) {
  return {.name = "OptionalHasElement",
          .doc = "Whether an optional holds something; true for tensors and sequences",
          .min_inputs = 0,
          .max_inputs = 1,
          .any_dtype = true,
          .infer = [](InferContext& context) -> Status {
            context.set_output(0, DType::kBool, Shape{});
            return ok_status();
          },
          .eval_data = [](const Node&, DataInputs inputs) -> DataResult {
            DECANT_ASSIGN(Tensor out, Tensor::allocate(DType::kBool, {}));
            *out.mutable_data_as<uint8_t>() =
                !inputs.empty() && inputs[0] != nullptr && !inputs[0]->is_empty();
            return one(std::move(out));
          }};
}

}  // namespace decant::ir
