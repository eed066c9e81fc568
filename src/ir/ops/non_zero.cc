#include "ir/ops/common.h"

namespace decant::ir {
namespace {

Status infer_non_zero(InferContext& context) {
  const Dim count = context.fresh_symbol("nonzero");
  const Dim rank =
      context.shape(0) ? Dim(static_cast<int64_t>(context.shape(0)->size())) : context.fresh_symbol("rank");
  context.set_output(0, DType::kInt64, Shape{rank, count});
  return ok_status();
}

EvalResult eval_non_zero(const Node&, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  const std::vector<double> values = read<double>(x);
  Dims found;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] != 0) found.push_back(static_cast<int64_t>(i));
  }
  const auto count = static_cast<int64_t>(found.size());
  DECANT_ASSIGN(Tensor out, Tensor::allocate(DType::kInt64, {static_cast<int64_t>(x.rank()), count}));
  const Dims strides = strides_of(x.dims());
  for (size_t d = 0; d < x.rank(); ++d) {
    for (int64_t i = 0; i < count; ++i) {
      out.mutable_data_as<int64_t>()[static_cast<int64_t>(d) * count + i] =
          found[static_cast<size_t>(i)] / strides[d] % x.dims()[d];
    }
  }
  return single(std::move(out));
}

}  // namespace

DECANT_OP(NonZero) {
  return {.name = "NonZero",
          .doc = "Indices of the elements that are not 0, [rank, count]",
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = infer_non_zero,
          .eval = eval_non_zero};
}

}  // namespace decant::ir
