#include "ir/ops/common.h"

namespace decant::ir {
namespace {

Status infer_reverse_sequence(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_rank(context, 1, 1));
  if (context.dtype(1) != DType::kInt64) return context.error("sequence_lens must be int64");
  return infer_same(context);
}

/// Element t of row b is element length[b] - 1 - t while t is below length[b], and stays otherwise.
EvalResult eval_reverse_sequence(const Node& node, EvalInputs inputs) {
  const Tensor &x = *inputs[0], &lengths = *inputs[1];
  if (x.rank() < 2) return node_error(node, "needs rank 2 or more");
  const int64_t batch_axis = node.int_attribute("batch_axis", 1),
                time_axis = node.int_attribute("time_axis", 0);
  if (batch_axis + time_axis != 1 || batch_axis * time_axis != 0) {
    return node_error(node, "batch_axis and time_axis must be 0 and 1");
  }
  const int64_t batch = x.dims()[static_cast<size_t>(batch_axis)],
                time = x.dims()[static_cast<size_t>(time_axis)], inner = product(x.dims(), 2, x.rank());
  if (lengths.dtype() != DType::kInt64 || lengths.elements() != batch) {
    return node_error(node, "sequence_lens must have one int64 for each row of the batch");
  }
  DECANT_ASSIGN(Tensor out, Tensor::allocate(x.dtype(), x.dims()));
  if (x.elements() == 0) return single(std::move(out));
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t length = lengths.int_at(b);
    if (length < 0 || length > time) return node_error(node, "a sequence length is outside the time axis");
    for (int64_t t = 0; t < time; ++t) {
      const int64_t from = t < length ? length - 1 - t : t;
      const auto at = [&](int64_t step) { return batch_axis == 0 ? b * time + step : step * batch + b; };
      copy_elements(out, at(t) * inner, x, at(from) * inner, inner);
    }
  }
  return single(std::move(out));
}

}  // namespace

DECANT_OP(ReverseSequence) {
  return {.name = "ReverseSequence",
          .doc = "The first sequence_lens[b] steps of each row of the batch in reverse order",
          .min_inputs = 2,
          .max_inputs = 2,
          .any_dtype = true,
          .infer = infer_reverse_sequence,
          .eval = eval_reverse_sequence};
}

}  // namespace decant::ir
