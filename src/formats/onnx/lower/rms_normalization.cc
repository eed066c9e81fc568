#include "formats/onnx/lower/lowering.h"

namespace decant::onnx {

Status lower_rms_normalization(Lowering& l, ir::Node& node) {
  ir::Value* x = node.input(0);
  const DType dtype = x->dtype;
  const DType compute = dtype == DType::kFloat64 ? dtype : DType::kFloat32;
  std::vector<int64_t> axes = {-1};
  if (const int64_t axis = node.int_attribute("axis", -1); axis != -1) {
    if (!x->shape) return l.unsupported_node(node, "the rank of its input is not known");
    const auto rank = static_cast<int64_t>(x->shape->size());
    axes.clear();
    for (int64_t i = axis < 0 ? axis : axis - rank; i < 0; ++i) axes.push_back(i);
  }
  ir::Value* wide = l.cast(x, compute);
  ir::Value* squares = l.emit("Mul", {wide, wide});
  ir::Value* mean = l.emit("ReduceMean", {squares, l.ints(axes)}, {{"keepdims", int64_t{1}}});
  ir::Value* root =
      l.emit("Sqrt", {l.emit("Add", {mean, l.number(compute, node.float_attribute("epsilon", 1e-5f))})});
  ir::Value* normed = l.cast(l.emit("Div", {wide, root}), dtype);
  l.replace(node, 0, l.emit("Mul", {normed, l.cast(node.input(1), dtype)}));
  return ok_status();
}

}  // namespace decant::onnx
