#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

/// Entries that a window cache of `capacity` holds after `total` tokens (ONNX Runtime's GroupQueryAttention,
/// sliding_window_cache).
int64_t resident_entries(int64_t total, int64_t capacity, int64_t window) {
  if (total <= capacity) return total;
  const int64_t step = capacity - window + 1;
  return total - step * ((total - capacity + step - 1) / step);
}

Status infer_sliding_cache(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_same_dtype(context, 0, 2));
  DECANT_RETURN_IF_ERROR(require_dtype(context, 2, is_index, "an int64 tensor"));
  DECANT_RETURN_IF_ERROR(require_dtype(context, 3, is_index, "an int64 tensor"));
  if (context.node().int_attribute("window", 0) <= 0) return context.error("'window' must be positive");
  const DType dtype = context.dtype(0);
  context.set_output(0, dtype, context.shape(0));
  std::optional<Shape> joined, lengths;
  if (context.shape(0) && context.shape(1)) {
    if (context.shape(0)->size() != 4 || context.shape(1)->size() != 4) return context.error("needs rank 4");
    joined = *context.shape(0);
    (*joined)[2] = (*joined)[2] + (*context.shape(1))[2];
    lengths = Shape{(*joined)[0]};
  }
  context.set_output(1, dtype, std::move(joined));
  context.set_output(2, DType::kInt64, std::move(lengths));
  return ok_status();
}

/// A cache [batch, heads, capacity, size] of the newest entries, in order, from row 0. `past` tokens came
/// before, `total` is their number with the valid ones of the update [batch, heads, new, size]. Gives the
/// cache afterwards; its old entries and the whole update in one piece; and how many of the old entries those
/// are.
EvalResult eval_sliding_cache(const Node& node, EvalInputs inputs) {
  const Tensor &cache = *inputs[0], &update = *inputs[1], &past = *inputs[2], &total = *inputs[3];
  if (cache.rank() != 4 || update.rank() != 4 || cache.dtype() != update.dtype() ||
      cache.dims()[0] != update.dims()[0] || cache.dims()[1] != update.dims()[1] ||
      cache.dims()[3] != update.dims()[3]) {
    return node_error(node, fmt::format("{} does not fit {}", describe(update), describe(cache)));
  }
  const int64_t batch = cache.dims()[0], heads = cache.dims()[1], capacity = cache.dims()[2],
                size = cache.dims()[3], length = update.dims()[2];
  const int64_t window = node.int_attribute("window", 0);
  if (window <= 0 || capacity < window) {
    return node_error(
        node, fmt::format("a cache of {} entries is shorter than the window of {}", capacity, window));
  }
  if (past.elements() != batch || total.elements() != batch)
    return node_error(node, "lengths must have one number for each batch row");
  DECANT_ASSIGN(Tensor present, Tensor::allocate(cache.dtype(), cache.dims()));
  DECANT_ASSIGN(Tensor joined, Tensor::allocate(cache.dtype(), {batch, heads, capacity + length, size}));
  std::fill_n(present.mutable_data_as<std::byte>(), present.bytes(), std::byte{0});
  std::fill_n(joined.mutable_data_as<std::byte>(), joined.bytes(), std::byte{0});
  std::vector<int64_t> resident(static_cast<size_t>(batch));
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t before = past.int_at(b), after = total.int_at(b);
    if (before < 0 || after < before || after - before > length)
      return node_error(node,
                        fmt::format("{} tokens before and {} after {} new ones", before, after, length));
    const int64_t old = resident_entries(before, capacity, window);
    const int64_t kept = resident_entries(after, capacity, window);
    const int64_t shift = after - kept - (before - old);
    resident[static_cast<size_t>(b)] = old;
    for (int64_t h = 0; h < heads; ++h) {
      const int64_t row = b * heads + h, from = row * capacity * size, to = row * (capacity + length) * size;
      copy_elements(joined, to, cache, from, old * size);
      copy_elements(joined, to + old * size, update, row * length * size, length * size);
      copy_elements(present, from, joined, to + shift * size, kept * size);
    }
  }
  std::vector<Tensor> out = {std::move(present), std::move(joined), Tensor::vector(resident)};
  out.resize(std::max<size_t>(1, std::min<size_t>(3, node.outputs().size())));
  return out;
}

}  // namespace

DECANT_OP(SlidingCache) {
  return {.name = "SlidingCache",
          .domain = "decant",
          .doc = "Writes new entries into a cache that keeps the newest ones only",
          .min_inputs = 4,
          .max_inputs = 4,
          .max_outputs = 3,
          .infer = infer_sliding_cache,
          .eval = eval_sliding_cache};
}

}  // namespace decant::ir
