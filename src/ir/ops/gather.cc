#include <algorithm>

#include <fmt/format.h>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

/// A negative index counts from the end. Fails outside the axis.
Result<int64_t> resolve_index(const Node& node, int64_t index, int64_t length) {
  if (index < -length || index >= length) {
    return node_error(node, fmt::format("index {} is outside an axis of {}", index, length));
  }
  return index < 0 ? index + length : index;
}

Status infer_gather(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 1, is_index, "an int32 or int64 tensor"));
  if (!context.shape(0) || !context.shape(1)) {
    context.set_output(0, context.dtype(0), std::nullopt);
    return ok_status();
  }
  const Shape data = *context.shape(0), indices = *context.shape(1);
  DECANT_ASSIGN(const size_t axis,
                resolve_axis(context.node(), context.node().int_attribute("axis", 0), data.size()));
  const auto at = data.begin() + static_cast<std::ptrdiff_t>(axis);
  Shape out(data.begin(), at);
  out.insert(out.end(), indices.begin(), indices.end());
  out.insert(out.end(), at + 1, data.end());
  context.set_output(0, context.dtype(0), std::move(out));
  const auto elements = context.elements(0);
  const auto picks = context.constant_ints(1);
  if (!elements || !picks || data.size() != 1) return ok_status();
  std::vector<Dim> picked;
  for (int64_t i : *picks) {
    DECANT_ASSIGN(const int64_t k, resolve_index(context.node(), i, static_cast<int64_t>(elements->size())));
    picked.push_back((*elements)[static_cast<size_t>(k)]);
  }
  follow_elements(context, std::move(picked));
  return ok_status();
}

EvalResult eval_gather(const Node& node, EvalInputs inputs) {
  const Tensor &data = *inputs[0], &indices = *inputs[1];
  if (!is_index(indices.dtype())) return node_error(node, "indices must be int32 or int64");
  DECANT_ASSIGN(const size_t axis, resolve_axis(node, node.int_attribute("axis", 0), data.rank()));
  Dims dims(data.dims().begin(), data.dims().begin() + static_cast<std::ptrdiff_t>(axis));
  dims.insert(dims.end(), indices.dims().begin(), indices.dims().end());
  dims.insert(dims.end(), data.dims().begin() + static_cast<std::ptrdiff_t>(axis) + 1, data.dims().end());
  DECANT_ASSIGN(Tensor out, Tensor::allocate(data.dtype(), dims));
  Dims rows = indices.to_ints();
  for (int64_t& row : rows) {
    DECANT_ASSIGN(row, resolve_index(node, row, data.dims()[axis]));
  }
  if (out.elements() == 0) return single(std::move(out));
  const int64_t outer = product(data.dims(), 0, axis), inner = product(data.dims(), axis + 1, data.rank());
  int64_t to = 0;
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t row : rows) {
      copy_elements(out, to, data, (o * data.dims()[axis] + row) * inner, inner);
      to += inner;
    }
  }
  return single(std::move(out));
}

Status infer_gather_elements(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 1, is_index, "an int32 or int64 tensor"));
  if (context.shape(0)) {
    DECANT_RETURN_IF_ERROR(require_rank(context, 1, context.shape(0)->size()));
    DECANT_ASSIGN(
        [[maybe_unused]] const size_t axis,
        resolve_axis(context.node(), context.node().int_attribute("axis", 0), context.shape(0)->size()));
  }
  context.set_output(0, context.dtype(0), context.shape(1));
  return ok_status();
}

EvalResult eval_gather_elements(const Node& node, EvalInputs inputs) {
  const Tensor &data = *inputs[0], &indices = *inputs[1];
  DECANT_ASSIGN(const size_t axis, resolve_axis(node, node.int_attribute("axis", 0), data.rank()));
  if (!is_index(indices.dtype()) || indices.rank() != data.rank()) {
    return node_error(node, "indices must be integers of the data's rank");
  }
  for (size_t d = 0; d < data.rank(); ++d) {
    if (d != axis && indices.dims()[d] > data.dims()[d])
      return node_error(node, "indices reach outside the data");
  }
  Dims picks = indices.to_ints();
  for (int64_t& pick : picks) {
    DECANT_ASSIGN(pick, resolve_index(node, pick, data.dims()[axis]));
  }
  DECANT_ASSIGN(Tensor out, Tensor::allocate(data.dtype(), indices.dims()));
  Dims strides = strides_of(data.dims());
  const int64_t along = strides[axis];
  strides[axis] = 0;
  for_each_index<1>(indices.dims(), {strides}, [&](int64_t i, const std::array<int64_t, 1>& at) {
    copy_elements(out, i, data, at[0] + picks[static_cast<size_t>(i)] * along, 1);
  });
  return single(std::move(out));
}

Status infer_gather_nd(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 1, is_index, "an int64 tensor"));
  if (!context.shape(0) || !context.shape(1)) {
    context.set_output(0, context.dtype(0), std::nullopt);
    return ok_status();
  }
  const Shape data = *context.shape(0), indices = *context.shape(1);
  const int64_t batch = context.node().int_attribute("batch_dims", 0);
  if (indices.empty() || batch < 0 || batch >= static_cast<int64_t>(std::min(data.size(), indices.size()))) {
    return context.error(fmt::format("batch_dims {} does not fit the ranks", batch));
  }
  const auto depth = indices.back().as_constant();
  if (!depth) {
    context.set_output(0, context.dtype(0), std::nullopt);
    return ok_status();
  }
  if (*depth < 1 || *depth > static_cast<int64_t>(data.size()) - batch) {
    return context.error(fmt::format("{} indices for a rank of {}", *depth, data.size()));
  }
  Shape out(indices.begin(), indices.end() - 1);
  for (size_t b = 0; b < static_cast<size_t>(batch); ++b) {
    DECANT_ASSIGN(out[b], merge_dims(context, data[b], indices[b]));
  }
  out.insert(out.end(), data.begin() + batch + *depth, data.end());
  context.set_output(0, context.dtype(0), std::move(out));
  return ok_status();
}

EvalResult eval_gather_nd(const Node& node, EvalInputs inputs) {
  const Tensor &data = *inputs[0], &indices = *inputs[1];
  const int64_t batch = node.int_attribute("batch_dims", 0);
  if (!is_index(indices.dtype()) || indices.rank() == 0 || batch < 0 ||
      batch >= static_cast<int64_t>(std::min(data.rank(), indices.rank()))) {
    return node_error(node, "batch_dims or the indices do not fit the data");
  }
  const auto b = static_cast<size_t>(batch);
  const int64_t depth = indices.dims().back();
  if (depth < 1 || depth > static_cast<int64_t>(data.rank() - b)) {
    return node_error(node, fmt::format("{} indices for {}", depth, describe(data)));
  }
  for (size_t d = 0; d < b; ++d) {
    if (data.dims()[d] != indices.dims()[d]) return node_error(node, "batch dims differ");
  }
  const size_t tail = b + static_cast<size_t>(depth);
  Dims dims(indices.dims().begin(), indices.dims().end() - 1);
  dims.insert(dims.end(), data.dims().begin() + static_cast<std::ptrdiff_t>(tail), data.dims().end());
  DECANT_ASSIGN(Tensor out, Tensor::allocate(data.dtype(), dims));
  if (out.elements() == 0) return single(std::move(out));
  const Dims strides = strides_of(data.dims());
  const int64_t inner = product(data.dims(), tail, data.rank());
  const int64_t per_batch = product(data.dims(), b, data.rank());
  const int64_t tuples = indices.elements() / depth, batches = product(data.dims(), 0, b);
  for (int64_t t = 0; t < tuples; ++t) {
    int64_t from = t / (tuples / batches) * per_batch;
    for (int64_t k = 0; k < depth; ++k) {
      const size_t axis = b + static_cast<size_t>(k);
      DECANT_ASSIGN(const int64_t i, resolve_index(node, indices.int_at(t * depth + k), data.dims()[axis]));
      from += i * strides[axis];
    }
    copy_elements(out, t * inner, data, from, inner);
  }
  return single(std::move(out));
}

}  // namespace

DECANT_OP(Gather) {
  return {.name = "Gather",
          .doc = "Picks slices along `axis` by index",
          .min_inputs = 2,
          .max_inputs = 2,
          .any_dtype = true,
          .infer = infer_gather,
          .eval = eval_gather};
}

DECANT_OP(GatherElements) {
  return {.name = "GatherElements",
          .doc = "Picks one element for each index along `axis`",
          .min_inputs = 2,
          .max_inputs = 2,
          .any_dtype = true,
          .infer = infer_gather_elements,
          .eval = eval_gather_elements};
}

DECANT_OP(GatherND) {
  return {.name = "GatherND",
          .doc = "Picks slices by index tuples",
          .min_inputs = 2,
          .max_inputs = 2,
          .any_dtype = true,
          .infer = infer_gather_nd,
          .eval = eval_gather_nd};
}

}  // namespace decant::ir
