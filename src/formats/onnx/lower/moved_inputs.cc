#include "formats/onnx/lower/lowering.h"

namespace decant::onnx {

Status lower_reduce(Lowering& l, ir::Node& node) {
  const ir::Value* axes = node.input(1);
  if (!axes->constant) return l.unsupported_node(node, "its axes are not constant");
  DECANT_ASSIGN(const ir::Tensor values, axes->constant->materialize());
  std::vector<int64_t> list = values.to_ints();
  if (list.empty() && node.int_attribute("noop_with_empty_axes", 0)) {
    return l.unsupported_node(node, "noop_with_empty_axes");
  }
  node.attributes.erase("noop_with_empty_axes");
  if (!list.empty()) node.attributes["axes"] = std::move(list);
  node.set_input(1, nullptr);
  return ok_status();
}

Status lower_split(Lowering& l, ir::Node& node) {
  const auto* count = node.attribute<int64_t>("num_outputs");
  const ir::Value* x = node.input(0);
  if (count && x->shape) {
    const auto rank = static_cast<int64_t>(x->shape->size());
    const int64_t axis = node.int_attribute("axis", 0);
    const int64_t at = axis < 0 ? axis + rank : axis;
    const auto size =
        at >= 0 && at < rank ? (*x->shape)[static_cast<size_t>(at)].as_constant() : std::nullopt;
    if (size && *count > 0 && *size % *count) return l.unsupported_node(node, "parts of unequal size");
  }
  node.attributes.erase("num_outputs");
  return ok_status();
}

}  // namespace decant::onnx
