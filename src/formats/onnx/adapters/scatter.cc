#include "formats/onnx/adapters/adapters.h"

namespace decant::onnx {

/// Scatter was renamed to ScatterElements in opset 11.
Status adapt_scatter(Adaptation& a) {
  if (a.opset >= 11) return a.mismatch("Scatter was replaced by ScatterElements in opset 11");
  ir::Node* node = a.graph.add_node("ScatterElements", a.node.inputs(), 1, a.node.name + "_elements");
  node->attributes = a.node.attributes;
  a.replace_output(0, node->output(0));
  a.remove();
  return ok_status();
}

}  // namespace decant::onnx
