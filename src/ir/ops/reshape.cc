#include <algorithm>

#include <fmt/format.h>

#include "base/checked.h"
#include "ir/ops/common.h"

namespace decant::ir {
namespace {

void keep_elements(InferContext& context) {
  if (auto elements = context.elements(0)) follow_elements(context, *std::move(elements));
}

/// Result dims of Reshape for a known list of requested dims: 0 copies the input's dim (unless allowzero),
/// one -1 is what remains.
Result<Shape> reshaped(InferContext& context, const std::vector<Dim>& request) {
  const bool allow_zero = context.node().int_attribute("allowzero", 0) != 0;
  const auto& input = context.shape(0);
  Shape out;
  std::optional<size_t> open;
  for (size_t i = 0; i < request.size(); ++i) {
    const auto value = request[i].as_constant();
    if (value && *value == -1) {
      if (open) return context.error("the shape has more than one -1");
      open = i;
      out.push_back(Dim(1));
    } else if (value && *value == 0 && !allow_zero) {
      if (input && i >= input->size())
        return context.error(fmt::format("the shape's 0 at {} has no dim to copy", i));
      out.push_back(input ? (*input)[i] : context.fresh_symbol("dim"));
    } else if (value && *value < 0) {
      return context.error(fmt::format("the shape has the dim {}", *value));
    } else {
      out.push_back(request[i]);
    }
  }
  if (!input) {
    if (open) out[*open] = context.fresh_symbol("dim");
    return out;
  }
  if (!open) {
    const auto have = element_count(*input).as_constant(), want = element_count(out).as_constant();
    if (have && want && *have != *want) {
      return context.error(fmt::format("{} elements cannot take the shape {}", *have, to_string(out)));
    }
    return out;
  }
  // Dims copied from the input cancel, even when they may be zero at run time.
  Shape rest_in = *input, rest_out = out;
  rest_out.erase(rest_out.begin() + static_cast<std::ptrdiff_t>(*open));
  for (auto it = rest_out.begin(); it != rest_out.end();) {
    auto same = std::find(rest_in.begin(), rest_in.end(), *it);
    if (same == rest_in.end() || *it == Dim(0)) {
      ++it;
      continue;
    }
    rest_in.erase(same);
    it = rest_out.erase(it);
  }
  const Dim total = element_count(rest_in), known = element_count(rest_out);
  if (known == Dim(0)) return context.error("-1 beside a dim of 0");
  if (const auto exact = Dim::divide_exact(total, known)) {
    out[*open] = *exact;
  } else if (total.is_constant() && known.is_constant()) {
    return context.error(
        fmt::format("{} elements cannot be divided by {}", total.constant(), known.constant()));
  } else {
    out[*open] = floor_div(total, known);
  }
  return out;
}

Status infer_reshape(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 1, is_index, "an int64 tensor"));
  DECANT_RETURN_IF_ERROR(require_rank(context, 1, 1));
  if (const auto request = context.elements(1)) {
    DECANT_ASSIGN(Shape shape, reshaped(context, *request));
    context.set_output(0, context.dtype(0), std::move(shape));
  } else {
    const auto rank = constant_length(context, 1);
    std::optional<Shape> shape;
    if (rank && *rank >= 0 && *rank <= 64) shape = context.fresh_shape(static_cast<size_t>(*rank), "dim");
    context.set_output(0, context.dtype(0), std::move(shape));
  }
  keep_elements(context);
  return ok_status();
}

EvalResult eval_reshape(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  DECANT_ASSIGN(Dims dims, read_int_list(node, *inputs[1], "the shape"));
  const bool allow_zero = node.int_attribute("allowzero", 0) != 0;
  std::optional<size_t> open;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0 && !allow_zero) {
      if (i >= x.rank()) return node_error(node, "the shape's 0 has no dim to copy");
      dims[i] = x.dims()[i];
    } else if (dims[i] == -1) {
      if (open) return node_error(node, "the shape has more than one -1");
      open = i;
      dims[i] = 1;
    }
  }
  const auto known = checked_elements(dims);
  if (!known) return node_error(node, "the shape has a negative or too large dim");
  const auto total = static_cast<uint64_t>(x.elements());
  if (open) {
    if (*known == 0 || total % *known != 0) return node_error(node, "-1 cannot be resolved");
    dims[*open] = static_cast<int64_t>(total / *known);
  } else if (*known != total) {
    return node_error(node, fmt::format("{} cannot take {} elements", describe(x), *known));
  }
  return single(x.reshaped(std::move(dims)));
}

Result<size_t> flatten_axis(const Node& node, size_t rank) {
  const int64_t axis = node.int_attribute("axis", 1), r = static_cast<int64_t>(rank);
  if (axis < -r || axis > r) return node_error(node, fmt::format("axis {} is outside rank {}", axis, rank));
  return static_cast<size_t>(axis < 0 ? axis + r : axis);
}

Status infer_flatten(InferContext& context) {
  if (!context.shape(0)) {
    context.set_output(0, context.dtype(0), context.fresh_shape(2, "flat"));
    return ok_status();
  }
  const Shape& shape = *context.shape(0);
  DECANT_ASSIGN(const size_t axis, flatten_axis(context.node(), shape.size()));
  const auto split = shape.begin() + static_cast<std::ptrdiff_t>(axis);
  context.set_output(
      0, context.dtype(0),
      Shape{element_count(Shape(shape.begin(), split)), element_count(Shape(split, shape.end()))});
  return ok_status();
}

Status infer_unsqueeze(InferContext& context) {
  const auto axes = context.constant_ints(1);
  if (!axes || !context.shape(0)) {
    const auto count = constant_length(context, 1);
    std::optional<Shape> shape;
    if (context.shape(0) && count && *count >= 0 && *count <= 64) {
      shape = context.fresh_shape(context.shape(0)->size() + static_cast<size_t>(*count), "dim");
    }
    context.set_output(0, context.dtype(0), std::move(shape));
    return ok_status();
  }
  const Shape input = *context.shape(0);
  DECANT_ASSIGN(const auto resolved, resolve_axes(context.node(), *axes, input.size() + axes->size()));
  Shape out;
  size_t next = 0;
  for (size_t i = 0; i < input.size() + axes->size(); ++i) {
    const bool added = std::find(resolved.begin(), resolved.end(), i) != resolved.end();
    out.push_back(added ? Dim(1) : input[next++]);
  }
  context.set_output(0, context.dtype(0), std::move(out));
  keep_elements(context);
  return ok_status();
}

EvalResult eval_unsqueeze(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  DECANT_ASSIGN(const auto axes, read_int_list(node, *inputs[1], "the axes"));
  DECANT_ASSIGN(const auto resolved, resolve_axes(node, axes, x.rank() + axes.size()));
  Dims out;
  size_t next = 0;
  for (size_t i = 0; i < x.rank() + axes.size(); ++i) {
    const bool added = std::find(resolved.begin(), resolved.end(), i) != resolved.end();
    out.push_back(added ? 1 : x.dims()[next++]);
  }
  return single(x.reshaped(std::move(out)));
}

Status infer_squeeze(InferContext& context) {
  const bool all = !context.has_input(1);
  const auto axes = all ? std::nullopt : context.constant_ints(1);
  if (!context.shape(0) || (!all && !axes)) {
    const int64_t count = all ? -1 : constant_length(context, 1).value_or(-1);
    std::optional<Shape> shape;
    if (context.shape(0) && count >= 0 && static_cast<size_t>(count) <= context.shape(0)->size()) {
      shape = context.fresh_shape(context.shape(0)->size() - static_cast<size_t>(count), "dim");
    }
    context.set_output(0, context.dtype(0), std::move(shape));
    return ok_status();
  }
  const Shape input = *context.shape(0);
  Shape out;
  if (all) {
    for (const Dim& d : input) {
      // A dim that may be 1 leaves the rank open.
      if (!d.is_constant() && !at_least(context.graph(), d, 2)) {
        context.set_output(0, context.dtype(0), std::nullopt);
        return ok_status();
      }
      if (d != Dim(1)) out.push_back(d);
    }
  } else {
    DECANT_ASSIGN(const auto resolved, resolve_axes(context.node(), *axes, input.size()));
    for (size_t i = 0; i < input.size(); ++i) {
      if (std::find(resolved.begin(), resolved.end(), i) == resolved.end()) {
        out.push_back(input[i]);
      } else if (input[i].is_constant() && input[i].constant() != 1) {
        return context.error(
            fmt::format("axis {} has {} elements and cannot be dropped", i, input[i].constant()));
      }
    }
  }
  context.set_output(0, context.dtype(0), std::move(out));
  keep_elements(context);
  return ok_status();
}

EvalResult eval_squeeze(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  const Tensor* axes = optional_input(inputs, 1);
  std::vector<size_t> resolved;
  if (axes != nullptr) {
    DECANT_ASSIGN(const auto list, read_int_list(node, *axes, "the axes"));
    DECANT_ASSIGN(resolved, resolve_axes(node, list, x.rank()));
  }
  Dims out;
  for (size_t i = 0; i < x.rank(); ++i) {
    const bool drop =
        axes == nullptr ? x.dims()[i] == 1 : std::find(resolved.begin(), resolved.end(), i) != resolved.end();
    if (drop && x.dims()[i] != 1)
      return node_error(node, fmt::format("axis {} does not have one element", i));
    if (!drop) out.push_back(x.dims()[i]);
  }
  return single(x.reshaped(std::move(out)));
}

}  // namespace

DECANT_OP(Reshape) {
  return {.name = "Reshape",
          .doc = "Other dims, same elements; 0 copies a dim, -1 is what remains",
          .min_inputs = 2,
          .max_inputs = 2,
          .any_dtype = true,
          .infer = infer_reshape,
          .eval = eval_reshape};
}

DECANT_OP(Flatten) {
  return {.name = "Flatten",
          .doc = "Joins the dims before and after `axis`",
          .min_inputs = 1,
          .max_inputs = 1,
          .any_dtype = true,
          .infer = infer_flatten,
          .eval = [](const Node& node, EvalInputs inputs) -> EvalResult {
            const Tensor& x = *inputs[0];
            DECANT_ASSIGN(const size_t axis, flatten_axis(node, x.rank()));
            return single(x.reshaped({product(x.dims(), 0, axis), product(x.dims(), axis, x.rank())}));
          }};
}

DECANT_OP(Unsqueeze) {
  return {.name = "Unsqueeze",
          .doc = "Adds dims of 1 at the given axes",
          .min_inputs = 2,
          .max_inputs = 2,
          .any_dtype = true,
          .infer = infer_unsqueeze,
          .eval = eval_unsqueeze};
}

DECANT_OP(Squeeze) {
  return {.name = "Squeeze",
          .doc = "Drops dims of 1",
          .min_inputs = 1,
          .max_inputs = 2,
          .any_dtype = true,
          .infer = infer_squeeze,
          .eval = eval_squeeze};
}

}  // namespace decant::ir
