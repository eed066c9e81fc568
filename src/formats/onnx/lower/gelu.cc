#include <cmath>
#include <numbers>

#include "formats/onnx/lower/lowering.h"

namespace decant::onnx {

/// x/2 · (1 + erf(x / √2)), or with approximate "tanh": x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))).
Status lower_gelu(Lowering& l, ir::Node& node) {
  ir::Value* x = node.input(0);
  const auto number = [&](double v) { return l.number(x->dtype, v); };
  ir::Value* inner = nullptr;
  if (node.string_attribute("approximate", "none") == "tanh") {
    ir::Value* cube = l.emit("Mul", {l.emit("Mul", {l.emit("Mul", {x, x}), x}), number(0.044715)});
    ir::Value* scaled = l.emit("Mul", {l.emit("Add", {x, cube}), number(std::sqrt(2.0 / std::numbers::pi))});
    inner = l.emit("Tanh", {scaled});
  } else {
    inner = l.emit("Erf", {l.emit("Div", {x, number(std::numbers::sqrt2)})});
  }
  ir::Value* halved = l.emit("Mul", {x, number(0.5)});
  l.replace(node, 0, l.emit("Mul", {halved, l.emit("Add", {inner, number(1.0)})}));
  return ok_status();
}

}  // namespace decant::onnx
