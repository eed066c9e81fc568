#include "formats/onnx/adapters/adapters.h"

namespace decant::onnx {

/// Before opset 14 more than one output meant training; `spatial` went in opset 9.
Status adapt_batch_normalization(Adaptation& a) {
  if (a.opset >= 14) return ok_status();
  if (a.opset >= 9 && a.has("spatial")) return a.mismatch("'spatial' exists before opset 9 only");
  if (a.node.int_attribute("spatial", 1) != 1) {
    return unsupported(a.node.describe() + ": spatial = 0 (statistics by element) is not supported");
  }
  a.erase("spatial");
  if (a.node.outputs().size() < 2) return ok_status();
  for (size_t i = 1; i < a.node.outputs().size(); ++i) {
    const ir::Value* v = a.node.output(i);
    if (v && (!v->users().empty() || a.graph.is_output(v))) {
      return unsupported(a.node.describe() +
                         ": training mode is not supported; export the model in eval mode");
    }
  }
  ir::Node* node = a.graph.add_node("BatchNormalization", a.node.inputs(), 1, a.node.name + "_inference");
  node->attributes = a.node.attributes;
  a.replace_output(0, node->output(0));
  a.remove();
  return ok_status();
}

}  // namespace decant::onnx
