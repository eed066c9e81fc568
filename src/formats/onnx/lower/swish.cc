#include "formats/onnx/lower/lowering.h"

namespace decant::onnx {
namespace {

ir::Value* swish(Lowering& l, ir::Value* x, float alpha) {
  ir::Value* scaled = alpha == 1.0f ? x : l.emit("Mul", {x, l.number(x->dtype, alpha)});
  return l.emit("Mul", {x, l.emit("Sigmoid", {scaled})});
}

}  // namespace

Status lower_swish(Lowering& l, ir::Node& node) {
  l.replace(node, 0, swish(l, node.input(0), node.float_attribute("alpha", 1.0f)));
  return ok_status();
}

Status lower_swiglu(Lowering& l, ir::Node& node) {
  ir::Value* gate = swish(l, node.input(0), node.float_attribute("alpha", 1.0f));
  l.replace(node, 0, l.emit("Mul", {gate, node.input(1)}));
  return ok_status();
}

}  // namespace decant::onnx
