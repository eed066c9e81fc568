#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

const Dim& at(const std::vector<Dim>& list, size_t i) { return list[list.size() == 1 ? 0 : i]; }

Status infer_where(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_bool, "a bool tensor"));
  DECANT_RETURN_IF_ERROR(require_same_dtype(context, 1, 3));
  DECANT_ASSIGN(auto shape, broadcast_inputs(context, 0, 3));
  context.set_output(0, context.dtype(1), std::move(shape));
  const auto x = context.elements(1), y = context.elements(2);
  if (!x || !y || x->empty() || y->empty()) return ok_status();
  if (*x == *y) {  // whatever the condition, provided that it does not add elements
    const auto count = constant_length(context, 0);
    if (count && (*count == 1 || *count == static_cast<int64_t>(x->size()))) follow_elements(context, *x);
    return ok_status();
  }
  const auto condition = context.elements(0);
  if (!condition || condition->empty()) return ok_status();
  const size_t n = std::max({condition->size(), x->size(), y->size()});
  for (const auto* list : {&*condition, &*x, &*y}) {
    if (list->size() != 1 && list->size() != n) return ok_status();
  }
  std::vector<Dim> out;
  for (size_t i = 0; i < n; ++i) {
    const auto choice = at(*condition, i).as_constant();
    if (!choice) {
      if (at(*x, i) != at(*y, i)) return ok_status();
      out.push_back(at(*x, i));
    } else {
      out.push_back(*choice != 0 ? at(*x, i) : at(*y, i));
    }
  }
  follow_elements(context, std::move(out));
  return ok_status();
}

EvalResult eval_where(const Node& node, EvalInputs inputs) {
  const Tensor &condition = *inputs[0], &x = *inputs[1], &y = *inputs[2];
  if (condition.dtype() != DType::kBool || x.dtype() != y.dtype()) {
    return node_error(node, "needs a bool condition and two tensors of one type");
  }
  auto dims = broadcast_dims(x.dims(), y.dims());
  if (dims) dims = broadcast_dims(*dims, condition.dims());
  if (!dims) {
    return node_error(
        node, fmt::format("{}, {} and {} do not broadcast", describe(condition), describe(x), describe(y)));
  }
  DECANT_ASSIGN(Tensor out, Tensor::allocate(x.dtype(), *dims));
  const auto* truth = condition.data_as<uint8_t>();
  for_each_index<3>(*dims,
                    {broadcast_strides(condition.dims(), *dims), broadcast_strides(x.dims(), *dims),
                     broadcast_strides(y.dims(), *dims)},
                    [&](int64_t i, const std::array<int64_t, 3>& o) {
                      const bool first = truth[o[0]] != 0;
                      copy_elements(out, i, first ? x : y, first ? o[1] : o[2], 1);
                    });
  return single(std::move(out));
}

}  // namespace

DECANT_OP(Where) {
  return {.name = "Where",
          .doc = "x where the condition holds, else y, broadcast",
          .min_inputs = 3,
          .max_inputs = 3,
          .any_dtype = true,
          .infer = infer_where,
          .eval = eval_where};
}

}  // namespace decant::ir
