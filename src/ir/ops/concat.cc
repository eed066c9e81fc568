#include <fmt/format.h>

#include "base/checked.h"
#include "ir/ops/common.h"

namespace decant::ir {
namespace {

Status infer_concat(InferContext& context) {
  const size_t count = context.input_count();
  DECANT_RETURN_IF_ERROR(require_same_dtype(context, 0, count));
  if (context.node().attribute<int64_t>("axis") == nullptr)
    return context.error("attribute 'axis' is missing");
  std::optional<size_t> rank;
  bool complete = true;
  for (size_t i = 0; i < count; ++i) {
    if (!context.has_input(i)) return context.error(fmt::format("input {} is left out", i));
    if (!context.shape(i)) {
      complete = false;
      continue;
    }
    if (rank && *rank != context.shape(i)->size()) return context.error("inputs have different ranks");
    rank = context.shape(i)->size();
  }
  if (!rank) {
    context.set_output(0, context.dtype(0), std::nullopt);
    return ok_status();
  }
  DECANT_ASSIGN(const size_t axis,
                resolve_axis(context.node(), context.node().int_attribute("axis", 0), *rank));
  std::optional<Shape> out;
  Dim sum(0);
  for (size_t i = 0; i < count; ++i) {
    if (!context.shape(i)) continue;
    const Shape& next = *context.shape(i);
    sum = sum + next[axis];
    if (!out) {
      out = next;
      continue;
    }
    for (size_t d = 0; d < *rank; ++d) {
      if (d == axis) continue;
      DECANT_ASSIGN((*out)[d], merge_dims(context, (*out)[d], next[d]));
    }
  }
  (*out)[axis] = complete ? sum : context.fresh_symbol("concat");
  context.set_output(0, context.dtype(0), std::move(out));
  if (*rank != 1) return ok_status();
  std::vector<Dim> elements;
  for (size_t i = 0; i < count; ++i) {
    const auto next = context.elements(i);
    if (!next) return ok_status();
    elements.insert(elements.end(), next->begin(), next->end());
  }
  follow_elements(context, std::move(elements));
  return ok_status();
}

EvalResult eval_concat(const Node& node, EvalInputs inputs) {
  const Tensor& first = *inputs[0];
  DECANT_ASSIGN(const size_t axis, resolve_axis(node, node.int_attribute("axis", 0), first.rank()));
  Dims dims = first.dims();
  dims[axis] = 0;
  for (const Tensor* t : inputs) {
    if (t == nullptr || t->dtype() != first.dtype() || t->rank() != first.rank()) {
      return node_error(node, "inputs must have one type and rank");
    }
    for (size_t d = 0; d < dims.size(); ++d) {
      if (d != axis && t->dims()[d] != dims[d]) {
        return node_error(node, fmt::format("{} and {} differ at axis {}", describe(first), describe(*t), d));
      }
    }
    if (__builtin_add_overflow(dims[axis], t->dims()[axis], &dims[axis]))
      return node_error(node, "is too large");
  }
  DECANT_ASSIGN(Tensor out, Tensor::allocate(first.dtype(), dims));
  if (out.elements() == 0) return single(std::move(out));
  const int64_t outer = product(dims, 0, axis), inner = product(dims, axis + 1, dims.size());
  int64_t at = 0;
  for (const Tensor* t : inputs) {
    const int64_t run = t->dims()[axis] * inner;
    for (int64_t o = 0; o < outer; ++o) copy_elements(out, (o * dims[axis] + at) * inner, *t, o * run, run);
    at += t->dims()[axis];
  }
  return single(std::move(out));
}

}  // namespace

DECANT_OP(Concat) {
  return {.name = "Concat",
          .doc = "Joins tensors along `axis`",
          .min_inputs = 1,
          .max_inputs = -1,
          .any_dtype = true,
          .infer = infer_concat,
          .eval = eval_concat};
}

}  // namespace decant::ir
