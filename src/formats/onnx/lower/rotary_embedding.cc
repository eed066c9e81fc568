#include <fmt/format.h>

#include "formats/onnx/lower/lowering.h"

namespace decant::onnx {
namespace {

/// cos or sin as [B, 1, S, half], made once for all nodes that share the table and the positions.
ir::Value* table(Lowering& l, ir::Value* cache, ir::Value* positions) {
  const std::string key =
      fmt::format("rotary {} {}", static_cast<const void*>(cache), static_cast<const void*>(positions));
  auto it = l.shared.find(key);
  if (it != l.shared.end()) return it->second;
  ir::Value* rows = positions ? l.emit("Gather", {cache, positions}, {{"axis", int64_t{0}}}) : cache;
  return l.shared[key] = l.emit("Unsqueeze", {rows, l.ints({1})});
}

}  // namespace

Status lower_rotary_embedding(Lowering& l, ir::Node& node) {
  ir::Value* x = node.input(0);
  if (!x->shape) return l.unsupported_node(node, "the rank of its input is not known");
  const bool flat = x->shape->size() == 3;
  if (flat) {
    const int64_t heads = node.int_attribute("num_heads", 0);
    if (heads <= 0) return l.unsupported_node(node, "a rank-3 input needs num_heads");
    x = l.transpose(l.emit("Reshape", {x, l.ints({0, 0, heads, -1})}), {0, 2, 1, 3});
  }
  const auto size = x->shape ? x->shape->back().as_constant() : std::nullopt;
  if (!size) return l.unsupported_node(node, "the head size is not known");
  const int64_t partial = node.int_attribute("rotary_embedding_dim", 0);
  const int64_t rotated = partial ? partial : *size;
  if (rotated <= 0 || rotated > *size || rotated % 2)
    return l.unsupported_node(node, "rotary_embedding_dim does not fit");
  const int64_t half = rotated / 2, rest = *size - rotated;
  ir::Value* cos = table(l, node.input(1), node.input(3));
  ir::Value* sin = table(l, node.input(2), node.input(3));
  const Lowering::Attributes last = {{"axis", int64_t{-1}}};
  const bool interleaved = node.int_attribute("interleaved", 0) != 0;

  ir::Value *first = nullptr, *second = nullptr, *kept = nullptr;
  if (interleaved) {
    const auto strided = [&](int64_t begin) {
      return l.emit("Slice", {x, l.ints({begin}), l.ints({rotated}), l.ints({3}), l.ints({2})});
    };
    first = strided(0);
    second = strided(1);
    if (rest) kept = l.emit("Slice", {x, l.ints({rotated}), l.ints({*size}), l.ints({3})});
  } else {
    std::vector<int64_t> sizes = {half, half};
    if (rest) sizes.push_back(rest);
    ir::Node* parts = l.emit_node("Split", {x, l.ints(sizes)}, sizes.size(), last);
    first = parts->output(0);
    second = parts->output(1);
    if (rest) kept = parts->output(2);
  }
  ir::Value* real = l.emit("Sub", {l.emit("Mul", {first, cos}), l.emit("Mul", {second, sin})});
  ir::Value* imaginary = l.emit("Add", {l.emit("Mul", {second, cos}), l.emit("Mul", {first, sin})});
  ir::Value* y = nullptr;
  if (interleaved) {
    ir::Value* pairs = l.emit(
        "Concat", {l.emit("Unsqueeze", {real, l.ints({4})}), l.emit("Unsqueeze", {imaginary, l.ints({4})})},
        last);
    y = l.emit("Reshape", {pairs, l.ints({0, 0, 0, rotated})});
    if (kept) y = l.emit("Concat", {y, kept}, last);
  } else {
    std::vector<ir::Value*> parts = {real, imaginary};
    if (kept) parts.push_back(kept);
    y = l.emit("Concat", parts, last);
  }
  if (flat) y = l.emit("Reshape", {l.transpose(y, {0, 2, 1, 3}), l.ints({0, 0, -1})});
  l.replace(node, 0, y);
  return ok_status();
}

}  // namespace decant::onnx
