#include <fmt/format.h>

#include "formats/onnx/adapters/adapters.h"

namespace decant::onnx {

/// Outside training Dropout passes its input on. A used mask, or a training mode that is not constant false,
/// is not supported.
Status adapt_dropout(Adaptation& a) {
  DECANT_RETURN_IF_ERROR(a.check_moved("ratio", 1, 12));
  const ir::Value* mode = a.node.input(2);
  if (mode &&
      !(mode->constant && mode->constant->elements() == 1 && mode->constant->tensor().int_at(0) == 0)) {
    return unsupported(a.node.describe() + ": training mode is not supported; export the model in eval mode");
  }
  if (const ir::Value* mask = a.node.output(1); mask && (!mask->users().empty() || a.graph.is_output(mask))) {
    return unsupported(a.node.describe() + ": the mask output is not supported");
  }
  if (!a.node.input(0)) return invalid_model(a.node.describe() + " has no input");
  ir::Node* identity = a.graph.add_node("Identity", {a.node.input(0)}, 1, a.node.name + "_identity");
  a.replace_output(0, identity->output(0));
  a.remove();
  return ok_status();
}

}  // namespace decant::onnx
