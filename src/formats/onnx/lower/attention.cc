#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "formats/onnx/lower/lowering.h"

namespace decant::onnx {
namespace {

/// Added to the scores of keys that may not be seen: finite, so that a fully masked row has no NaN.
constexpr double kMasked = std::numeric_limits<float>::lowest();

/// [B, H, S, D] from [B, S, H*D]; rank 4 stays.
Result<ir::Value*> split_heads(Lowering& l, const ir::Node& node, ir::Value* x, const char* attribute) {
  if (!x->shape) return l.unsupported_node(node, "the rank of an input is not known");
  if (x->shape->size() == 4) return x;
  const int64_t heads = node.int_attribute(attribute, 0);
  if (x->shape->size() != 3 || heads <= 0) {
    return l.unsupported_node(node, fmt::format("rank-3 inputs need {}", attribute));
  }
  return l.transpose(l.emit("Reshape", {x, l.ints({0, 0, heads, -1})}), {0, 2, 1, 3});
}

/// Each key or value head repeated for its group of query heads.
ir::Value* repeat_heads(Lowering& l, ir::Value* x, int64_t heads, int64_t repeats, int64_t size) {
  if (repeats == 1) return x;
  ir::Value* grouped = l.emit("Unsqueeze", {x, l.ints({2})});
  ir::Value* repeated = l.emit("Expand", {grouped, l.ints({1, 1, repeats, 1, 1})});
  return l.emit("Reshape", {repeated, l.ints({0, heads, -1, size})});
}

/// A bool mask as numbers to add, or a number mask in `dtype`; once for all layers.
ir::Value* additive_mask(Lowering& l, ir::Value* mask, DType dtype) {
  const std::string key = fmt::format("mask {} {}", static_cast<const void*>(mask), to_string(dtype));
  auto it = l.shared.find(key);
  if (it != l.shared.end()) return it->second;
  ir::Value* numbers = mask->dtype == DType::kBool
                           ? l.emit("Where", {mask, l.number(dtype, 0.0), l.number(dtype, kMasked)})
                           : l.cast(mask, dtype);
  return l.shared[key] = numbers;
}

ir::Value* axis_size(Lowering& l, ir::Value* x, int64_t axis) {
  return l.emit("Gather", {l.emit("Shape", {x}), l.int_scalar(axis)}, {{"axis", int64_t{0}}});
}

/// [S, M] mask of is_causal and the windows: query i at position i, keys j from 0.
ir::Value* position_mask(Lowering& l, const ir::Node& node, ir::Value* q, ir::Value* k) {
  const bool causal = node.int_attribute("is_causal", 0) != 0;
  const int64_t left = node.int_attribute("left_window_size", -1),
                right = node.int_attribute("right_window_size", -1);
  if (!causal && left < 0 && right < 0) return nullptr;
  const auto range = [&](ir::Value* x) {
    return l.emit("Range", {l.int_scalar(0), axis_size(l, x, 2), l.int_scalar(1)});
  };
  ir::Value* rows = l.emit("Unsqueeze", {range(q), l.ints({1})});
  ir::Value* columns = l.emit("Unsqueeze", {range(k), l.ints({0})});
  ir::Value* seen = nullptr;
  const auto both = [&](ir::Value* more) { seen = seen ? l.emit("And", {seen, more}) : more; };
  if (causal) both(l.emit("LessOrEqual", {columns, rows}));
  if (left >= 0) both(l.emit("GreaterOrEqual", {columns, l.emit("Sub", {rows, l.int_scalar(left)})}));
  if (right >= 0) both(l.emit("LessOrEqual", {columns, l.emit("Add", {rows, l.int_scalar(right)})}));
  return seen;
}

}  // namespace

Status lower_attention(Lowering& l, ir::Node& node) {
  if (node.input(4) || node.input(5)) return l.unsupported_node(node, "past_key and past_value inputs");
  if (node.input(7)) return l.unsupported_node(node, "attention sinks");
  if (node.input(6)) return l.unsupported_node(node, "nonpad_kv_seqlen; give the mask as attn_mask instead");
  for (size_t i = 1; i < node.outputs().size(); ++i) {
    if (node.output(i)) return l.unsupported_node(node, fmt::format("output {}", i));
  }
  const bool flat = node.input(0)->shape && node.input(0)->shape->size() == 3;
  DECANT_ASSIGN(ir::Value * q, split_heads(l, node, node.input(0), "q_num_heads"));
  DECANT_ASSIGN(ir::Value * k, split_heads(l, node, node.input(1), "kv_num_heads"));
  DECANT_ASSIGN(ir::Value * v, split_heads(l, node, node.input(2), "kv_num_heads"));
  const auto fixed = [](const ir::Value* x, size_t axis) {
    return x->shape && x->shape->size() == 4 ? (*x->shape)[axis].as_constant() : std::nullopt;
  };
  const auto q_heads = fixed(q, 1), kv_heads = fixed(k, 1), size = fixed(q, 3), value_size = fixed(v, 3);
  if (!q_heads || !kv_heads || !size || !value_size || *kv_heads <= 0 || *q_heads % *kv_heads || *size <= 0) {
    return l.unsupported_node(node, "head counts and sizes must be known numbers, the former a multiple");
  }
  const DType dtype = q->dtype;
  const DType compute = dtype == DType::kFloat64 ? dtype : DType::kFloat32;
  ir::Value* positions = position_mask(l, node, q, k);
  k = repeat_heads(l, k, *q_heads, *q_heads / *kv_heads, *size);
  v = repeat_heads(l, v, *q_heads, *q_heads / *kv_heads, *value_size);

  ir::Value* scores = l.emit("MatMul", {q, l.transpose(k, {0, 1, 3, 2})});
  const float given = node.float_attribute("scale", 0.0f);
  const double scale = given != 0.0f ? given : 1.0 / std::sqrt(static_cast<double>(*size));
  scores = l.cast(l.emit("Mul", {scores, l.number(dtype, scale)}), compute);
  if (const float cap = node.float_attribute("softcap", 0.0f); cap > 0.0f) {
    ir::Value* limit = l.number(compute, cap);
    scores = l.emit("Mul", {l.emit("Tanh", {l.emit("Div", {scores, limit})}), limit});
  }
  if (ir::Value* mask = node.input(3)) scores = l.emit("Add", {scores, additive_mask(l, mask, compute)});
  if (positions) scores = l.emit("Add", {scores, additive_mask(l, positions, compute)});
  ir::Value* weights = l.cast(l.emit("Softmax", {scores}, {{"axis", int64_t{-1}}}), dtype);
  ir::Value* y = l.emit("MatMul", {weights, v});
  if (flat) y = l.emit("Reshape", {l.transpose(y, {0, 2, 1, 3}), l.ints({0, 0, -1})});
  l.replace(node, 0, y);
  return ok_status();
}

}  // namespace decant::onnx
