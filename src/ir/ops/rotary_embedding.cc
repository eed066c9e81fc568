#include <fmt/format.h>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

Status infer_rotary(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_same_dtype(context, 0, 3));
  DECANT_RETURN_IF_ERROR(require_dtype(context, 3, is_index, "an int64 tensor"));
  if (context.shape(0)) {
    const size_t rank = context.shape(0)->size();
    if (rank != 3 && rank != 4) return context.error("needs rank 3 or 4");
    if (rank == 3 && context.node().int_attribute("num_heads", 0) <= 0) {
      return context.error("rank 3 needs the attribute 'num_heads'");
    }
  }
  return infer_same_float(context);
}

/// Rotates pairs of elements of each head by the angle of their position (ONNX RotaryEmbedding-23):
/// (x1, x2) -> (cos x1 - sin x2, sin x1 + cos x2). X is [batch, heads, sequence, size] or [batch, sequence,
/// heads * size]; caches are [positions, half] with position_ids [batch, sequence], else [batch, sequence,
/// half], where beyond ONNX a batch of 1 serves all rows.
EvalResult eval_rotary(const Node& node, EvalInputs inputs) {
  const Tensor &x = *inputs[0], &cos_cache = *inputs[1], &sin_cache = *inputs[2];
  const Tensor* positions = optional_input(inputs, 3);
  if ((x.rank() != 3 && x.rank() != 4) || !is_float(x.dtype()))
    return node_error(node, "needs a float tensor of rank 3 or 4");
  const bool flat = x.rank() == 3;
  const int64_t heads = flat ? node.int_attribute("num_heads", 0) : x.dims()[1];
  if (flat && (heads <= 0 || x.dims()[2] % heads != 0))
    return node_error(node, "num_heads does not divide the input");
  const int64_t batch = x.dims()[0], sequence = flat ? x.dims()[1] : x.dims()[2];
  const int64_t size = flat ? x.dims()[2] / heads : x.dims()[3];
  const int64_t declared = node.int_attribute("rotary_embedding_dim", 0);
  const int64_t rotated = declared == 0 ? size : declared;
  if (rotated < 0 || rotated > size || rotated % 2 != 0) {
    return node_error(node, fmt::format("cannot rotate {} of {} elements", rotated, size));
  }
  const int64_t half = rotated / 2;
  const bool shared = positions == nullptr && cos_cache.rank() == 3 && cos_cache.dims()[0] == 1;
  const Dims expected = positions != nullptr ? Dims{cos_cache.rank() == 2 ? cos_cache.dims()[0] : 0, half}
                                             : Dims{shared ? 1 : batch, sequence, half};
  if (cos_cache.dims() != expected || sin_cache.dims() != expected) {
    return node_error(node,
                      fmt::format("caches {} and {} do not fit", describe(cos_cache), describe(sin_cache)));
  }
  if (positions != nullptr && (!is_index(positions->dtype()) || positions->dims() != Dims{batch, sequence})) {
    return node_error(node, fmt::format("position_ids {} do not fit", describe(*positions)));
  }
  const bool interleaved = node.int_attribute("interleaved", 0) != 0;
  const std::vector<double> cosines = read<double>(cos_cache), sines = read<double>(sin_cache);
  const std::vector<double> in = read<double>(x);
  std::vector<double> out = in;
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t s = 0; s < sequence; ++s) {
      int64_t row = (shared ? 0 : b * sequence) + s;
      if (positions != nullptr) {
        row = positions->int_at(b * sequence + s);
        if (row < -expected[0] || row >= expected[0]) {
          return node_error(node, fmt::format("position {} is outside a cache of {}", row, expected[0]));
        }
        if (row < 0) row += expected[0];
      }
      for (int64_t h = 0; h < heads; ++h) {
        const int64_t base = (flat ? (b * sequence + s) * heads + h : (b * heads + h) * sequence + s) * size;
        for (int64_t i = 0; i < half; ++i) {
          const auto first = static_cast<size_t>(base + (interleaved ? 2 * i : i));
          const auto second = static_cast<size_t>(base + (interleaved ? 2 * i + 1 : i + half));
          const double c = cosines[static_cast<size_t>(row * half + i)],
                       d = sines[static_cast<size_t>(row * half + i)];
          out[first] = c * in[first] - d * in[second];
          out[second] = d * in[first] + c * in[second];
        }
      }
    }
  }
  return single(make_tensor<double>(x.dtype(), x.dims(), out));
}

}  // namespace

DECANT_OP(RotaryEmbedding) {
  return {.name = "RotaryEmbedding",
          .doc = "Rotates halves or pairs of each head by position",
          .min_inputs = 3,
          .max_inputs = 4,
          .infer = infer_rotary,
          .eval = eval_rotary};
}

}  // namespace decant::ir
