#include <fmt/format.h>

#include "formats/onnx/lower/lowering.h"

namespace decant::onnx {
namespace {

/// Positions along `axis` for every element of `update`: write_indices[b] + s, in update's shape. Shared by
/// the nodes whose updates have equal shapes.
ir::Value* scatter_indices(Lowering& l, ir::Value* update, ir::Value* write, size_t axis) {
  const std::string key =
      fmt::format("scatter {} {} {}", static_cast<const void*>(write), axis, ir::to_string(*update->shape));
  auto it = l.shared.find(key);
  if (it != l.shared.end()) return it->second;
  const size_t rank = update->shape->size();
  ir::Value* shape = l.emit("Shape", {update});
  ir::Value* count =
      l.emit("Gather", {shape, l.int_scalar(static_cast<int64_t>(axis))}, {{"axis", int64_t{0}}});
  ir::Value* steps = l.emit("Range", {l.int_scalar(0), count, l.int_scalar(1)});
  std::vector<int64_t> column(rank, 1);
  column[axis] = -1;
  ir::Value* indices = l.emit("Reshape", {steps, l.ints(column)});
  if (write) {
    std::vector<int64_t> batch(rank, 1);
    batch[0] = -1;
    indices = l.emit("Add", {l.emit("Reshape", {l.cast(write, DType::kInt64), l.ints(batch)}), indices});
  }
  return l.shared[key] = l.emit("Expand", {indices, shape});
}

}  // namespace

Status lower_tensor_scatter(Lowering& l, ir::Node& node) {
  if (node.string_attribute("mode", "linear") != "linear")
    return l.unsupported_node(node, "mode other than linear");
  ir::Value* update = node.input(1);
  if (!update->shape) return l.unsupported_node(node, "the rank of its update is not known");
  const auto rank = static_cast<int64_t>(update->shape->size());
  int64_t axis = node.int_attribute("axis", -2);
  if (axis < 0) axis += rank;
  if (axis <= 0 || axis >= rank) return l.unsupported_node(node, "axis outside 1 to rank - 1");
  ir::Value* indices = scatter_indices(l, update, node.input(2), static_cast<size_t>(axis));
  l.replace(node, 0, l.emit("ScatterElements", {node.input(0), indices, update}, {{"axis", axis}}));
  return ok_status();
}

}  // namespace decant::onnx
