#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

enum class Reduction { kNone, kAdd, kMul, kMax, kMin };

Result<Reduction> reduction_of(const Node& node) {
  const std::string name = node.string_attribute("reduction", "none");
  if (name == "none") return Reduction::kNone;
  if (name == "add") return Reduction::kAdd;
  if (name == "mul") return Reduction::kMul;
  if (name == "max") return Reduction::kMax;
  if (name == "min") return Reduction::kMin;
  return node_error(node, fmt::format("unknown reduction '{}'", name));
}

template <typename C>
C combine(Reduction reduction, C old, C update) {
  switch (reduction) {
    case Reduction::kNone:
      return update;
    case Reduction::kAdd:
      if constexpr (std::is_same_v<C, int64_t>) {
        return static_cast<int64_t>(static_cast<uint64_t>(old) + static_cast<uint64_t>(update));
      } else {
        return old + update;
      }
    case Reduction::kMul:
      if constexpr (std::is_same_v<C, int64_t>) {
        return static_cast<int64_t>(static_cast<uint64_t>(old) * static_cast<uint64_t>(update));
      } else {
        return old * update;
      }
    case Reduction::kMax:
      return std::max(old, update);
    case Reduction::kMin:
      return std::min(old, update);
  }
  return update;
}

/// target[to + k] = combine(target[to + k], updates[from + k]) for k in [0, count).
void apply(Reduction reduction, Tensor& target, int64_t to, const Tensor& updates, int64_t from,
           int64_t count) {
  if (reduction == Reduction::kNone) return copy_elements(target, to, updates, from, count);
  with_compute_type(target.dtype(), [&](auto tag) {
    using C = typename decltype(tag)::type;
    std::vector<C> old(static_cast<size_t>(count)), next(old.size());
    read_range<C>(target, to, std::span<C>(old));
    read_range<C>(updates, from, std::span<C>(next));
    for (size_t k = 0; k < old.size(); ++k) old[k] = combine(reduction, old[k], next[k]);
    write_range<C>(target, to, std::span<const C>(old));
  });
}

Result<int64_t> resolve_index(const Node& node, int64_t index, int64_t length) {
  if (index < -length || index >= length) {
    return node_error(node, fmt::format("index {} is outside an axis of {}", index, length));
  }
  return index < 0 ? index + length : index;
}

Status infer_scatter(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 1, is_index, "an int32 or int64 tensor"));
  if (context.dtype(0) != context.dtype(2)) return context.error("data and updates must have one type");
  DECANT_ASSIGN(const Reduction reduction, reduction_of(context.node()));
  if (reduction != Reduction::kNone && context.dtype(0) > DType::kBool) {
    return context.error(fmt::format("no reduction of {}", to_string(context.dtype(0))));
  }
  return infer_same(context);
}

EvalResult eval_scatter_elements(const Node& node, EvalInputs inputs) {
  const Tensor &data = *inputs[0], &indices = *inputs[1], &updates = *inputs[2];
  DECANT_ASSIGN(const Reduction reduction, reduction_of(node));
  DECANT_ASSIGN(const size_t axis, resolve_axis(node, node.int_attribute("axis", 0), data.rank()));
  if (!is_index(indices.dtype()) || indices.dims() != updates.dims() || indices.rank() != data.rank() ||
      updates.dtype() != data.dtype()) {
    return node_error(node, "indices and updates must have one shape, of the data's rank and type");
  }
  for (size_t d = 0; d < data.rank(); ++d) {
    if (d != axis && indices.dims()[d] > data.dims()[d])
      return node_error(node, "indices reach outside the data");
  }
  Dims picks = indices.to_ints();
  for (int64_t& pick : picks) {
    DECANT_ASSIGN(pick, resolve_index(node, pick, data.dims()[axis]));
  }
  DECANT_ASSIGN(Tensor out, clone(data));
  Dims strides = strides_of(data.dims());
  const int64_t along = strides[axis];
  strides[axis] = 0;
  for_each_index<1>(indices.dims(), {strides}, [&](int64_t i, const std::array<int64_t, 1>& at) {
    apply(reduction, out, at[0] + picks[static_cast<size_t>(i)] * along, updates, i, 1);
  });
  return single(std::move(out));
}

EvalResult eval_scatter_nd(const Node& node, EvalInputs inputs) {
  const Tensor &data = *inputs[0], &indices = *inputs[1], &updates = *inputs[2];
  DECANT_ASSIGN(const Reduction reduction, reduction_of(node));
  if (!is_index(indices.dtype()) || indices.rank() == 0 || updates.dtype() != data.dtype()) {
    return node_error(node, "needs integer indices and updates of the data's type");
  }
  const int64_t depth = indices.dims().back();
  if (depth < 0 || depth > static_cast<int64_t>(data.rank())) {
    return node_error(node, fmt::format("{} indices for {}", depth, describe(data)));
  }
  Dims expected(indices.dims().begin(), indices.dims().end() - 1);
  expected.insert(expected.end(), data.dims().begin() + depth, data.dims().end());
  if (expected != updates.dims()) {
    return node_error(
        node, fmt::format("updates are {}, not {}", describe(updates), describe(data.dtype(), expected)));
  }
  DECANT_ASSIGN(Tensor out, clone(data));
  if (updates.elements() == 0) return single(std::move(out));
  const Dims strides = strides_of(data.dims());
  const int64_t inner = product(data.dims(), static_cast<size_t>(depth), data.rank());
  const int64_t tuples = updates.elements() / inner;
  for (int64_t t = 0; t < tuples; ++t) {
    int64_t to = 0;
    for (int64_t k = 0; k < depth; ++k) {
      const auto axis = static_cast<size_t>(k);
      DECANT_ASSIGN(const int64_t i, resolve_index(node, indices.int_at(t * depth + k), data.dims()[axis]));
      to += i * strides[axis];
    }
    apply(reduction, out, to, updates, t * inner, inner);
  }
  return single(std::move(out));
}

Status infer_tensor_scatter(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_same_dtype(context, 0, 2));
  DECANT_RETURN_IF_ERROR(require_dtype(context, 2, is_index, "an int64 tensor"));
  DECANT_RETURN_IF_ERROR(require_rank(context, 2, 1));
  if (!context.shape(0)) return infer_same(context);
  Shape shape = *context.shape(0);
  DECANT_RETURN_IF_ERROR(require_rank(context, 1, shape.size()));
  DECANT_ASSIGN(const size_t axis,
                resolve_axis(context.node(), context.node().int_attribute("axis", -2), shape.size()));
  if (axis == 0) return context.error("axis 0 holds the batch");
  if (context.shape(1)) {
    for (size_t d = 0; d < shape.size(); ++d) {
      if (d == axis) continue;
      DECANT_ASSIGN(shape[d], merge_dims(context, shape[d], (*context.shape(1))[d]));
    }
  }
  context.set_output(0, context.dtype(0), std::move(shape));
  return ok_status();
}

/// present[b, .., w[b] + s, ..] = update[b, .., s, ..]; circular: modulo the cache length.
EvalResult eval_tensor_scatter(const Node& node, EvalInputs inputs) {
  const Tensor &past = *inputs[0], &update = *inputs[1];
  const Tensor* write = optional_input(inputs, 2);
  DECANT_ASSIGN(const size_t axis, resolve_axis(node, node.int_attribute("axis", -2), past.rank()));
  const std::string mode = node.string_attribute("mode", "linear");
  if (mode != "linear" && mode != "circular") return node_error(node, fmt::format("unknown mode '{}'", mode));
  if (axis == 0 || update.rank() != past.rank() || update.dtype() != past.dtype()) {
    return node_error(node, "cache and update must have one rank and type, and the axis is not the batch");
  }
  for (size_t d = 0; d < past.rank(); ++d) {
    const bool fits = d == axis ? update.dims()[d] <= past.dims()[d] : update.dims()[d] == past.dims()[d];
    if (!fits)
      return node_error(node, fmt::format("{} does not fit into {}", describe(update), describe(past)));
  }
  const int64_t batch = past.dims()[0], capacity = past.dims()[axis], length = update.dims()[axis];
  if (write != nullptr && (!is_index(write->dtype()) || write->elements() != batch)) {
    return node_error(node, "write_indices must have one integer for each batch");
  }
  DECANT_ASSIGN(Tensor out, clone(past));
  if (update.elements() == 0) return single(std::move(out));
  const int64_t middle = product(past.dims(), 1, axis), inner = product(past.dims(), axis + 1, past.rank());
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t start = write != nullptr ? write->int_at(b) : 0;
    if (start < 0 || start > (mode == "linear" ? capacity - length : INT64_MAX - length)) {
      return node_error(node, fmt::format("position {} for {} new entries is outside the cache of {}", start,
                                          length, capacity));
    }
    for (int64_t m = 0; m < middle; ++m) {
      const int64_t row = b * middle + m;
      for (int64_t s = 0; s < length; ++s) {
        copy_elements(out, (row * capacity + (start + s) % capacity) * inner, update,
                      (row * length + s) * inner, inner);
      }
    }
  }
  return single(std::move(out));
}

}  // namespace

DECANT_OP(ScatterElements) {
  return {.name = "ScatterElements",
          .doc = "Writes one element for each index along `axis`; reduction",
          .min_inputs = 3,
          .max_inputs = 3,
          .any_dtype = true,
          .infer = infer_scatter,
          .eval = eval_scatter_elements};
}

DECANT_OP(ScatterND) {
  return {.name = "ScatterND",
          .doc = "Writes slices at index tuples; reduction",
          .min_inputs = 3,
          .max_inputs = 3,
          .any_dtype = true,
          .infer = infer_scatter,
          .eval = eval_scatter_nd};
}

DECANT_OP(TensorScatter) {
  return {.name = "TensorScatter",
          .doc = "Writes new cache entries at a position of each batch row",
          .min_inputs = 2,
          .max_inputs = 3,
          .any_dtype = true,
          .infer = infer_tensor_scatter,
          .eval = eval_tensor_scatter};
}

}  // namespace decant::ir
