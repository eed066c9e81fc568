#include <algorithm>

#include <fmt/format.h>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

/// Sizes without a split input: equal parts, the last one takes what is missing.
Result<Dims> equal_parts(const Node& node, int64_t length, size_t outputs) {
  const auto parts = static_cast<int64_t>(outputs);
  const int64_t declared = node.int_attribute("num_outputs", parts);
  if (parts == 0 || declared != parts)
    return node_error(node, fmt::format("num_outputs {} for {} outputs", declared, parts));
  const int64_t size = length / parts + (length % parts != 0 ? 1 : 0);
  Dims sizes;
  for (int64_t i = 0; i < parts; ++i) sizes.push_back(std::clamp<int64_t>(length - i * size, 0, size));
  return sizes;
}

Status infer_split(InferContext& context) {
  const Node& node = context.node();
  const size_t outputs = node.outputs().size();
  const auto& shape = context.shape(0);
  if (!shape) {
    for (size_t i = 0; i < outputs; ++i) context.set_output(i, context.dtype(0), std::nullopt);
    return ok_status();
  }
  DECANT_ASSIGN(const size_t axis, resolve_axis(node, node.int_attribute("axis", 0), shape->size()));
  std::vector<Dim> sizes;
  if (context.has_input(1)) {
    if (const auto given = context.elements(1)) {
      if (given->size() != outputs) {
        return context.error(fmt::format("{} split sizes for {} outputs", given->size(), outputs));
      }
      sizes = *given;
      Dim sum(0);
      for (const Dim& d : sizes) {
        if (d.is_constant() && d.constant() < 0) return context.error("a split size is negative");
        sum = sum + d;
      }
      if (sum.is_constant() && (*shape)[axis].is_constant() && sum != (*shape)[axis]) {
        return context.error(
            fmt::format("split sizes add up to {}, not {}", sum.constant(), (*shape)[axis].constant()));
      }
    } else {
      for (size_t i = 0; i < outputs; ++i) sizes.push_back(context.fresh_symbol("split"));
    }
  } else if (const auto length = (*shape)[axis].as_constant()) {
    DECANT_ASSIGN(const Dims parts, equal_parts(node, *length, outputs));
    sizes.assign(parts.begin(), parts.end());
  } else {
    const auto exact = Dim::divide_exact((*shape)[axis], Dim(static_cast<int64_t>(outputs)));
    for (size_t i = 0; i < outputs; ++i) sizes.push_back(exact ? *exact : context.fresh_symbol("split"));
  }
  const auto elements = shape->size() == 1 ? context.elements(0) : std::nullopt;
  const Shape base = *shape;
  size_t at = 0;
  for (size_t i = 0; i < outputs; ++i) {
    Shape out = base;
    out[axis] = sizes[i];
    context.set_output(i, context.dtype(0), std::move(out));
    if (!elements || !sizes[i].is_constant() || node.output(i) == nullptr) continue;
    const auto size = static_cast<size_t>(sizes[i].constant());
    if (at + size > elements->size()) continue;
    context.set_elements(i, std::vector<Dim>(elements->begin() + static_cast<std::ptrdiff_t>(at),
                                             elements->begin() + static_cast<std::ptrdiff_t>(at + size)));
    at += size;
  }
  return ok_status();
}

EvalResult eval_split(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  DECANT_ASSIGN(const size_t axis, resolve_axis(node, node.int_attribute("axis", 0), x.rank()));
  const size_t outputs = node.outputs().size();
  Dims sizes;
  if (const Tensor* split = optional_input(inputs, 1)) {
    DECANT_ASSIGN(sizes, read_int_list(node, *split, "the split sizes"));
  } else {
    DECANT_ASSIGN(sizes, equal_parts(node, x.dims()[axis], outputs));
  }
  if (sizes.size() != outputs) return node_error(node, "as many split sizes as outputs are needed");
  int64_t left = x.dims()[axis];
  for (int64_t size : sizes) {
    if (size < 0 || size > left) return node_error(node, "split sizes do not fit the axis");
    left -= size;
  }
  if (left != 0) return node_error(node, "split sizes do not cover the axis");
  const Dims strides = strides_of(x.dims());
  std::vector<Tensor> out;
  int64_t at = 0;
  for (int64_t size : sizes) {
    Dims dims = x.dims();
    dims[axis] = size;
    DECANT_ASSIGN(Tensor part, strided_copy(x, dims, strides, at * strides[axis]));
    out.push_back(std::move(part));
    at += size;
  }
  return out;
}

}  // namespace

DECANT_OP(Split) {
  return {.name = "Split",
          .doc = "Cuts x along `axis` into parts of given or equal size",
          .min_inputs = 1,
          .max_inputs = 2,
          .max_outputs = -1,
          .any_dtype = true,
          .infer = infer_split,
          .eval = eval_split};
}

}  // namespace decant::ir
