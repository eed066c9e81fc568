#include "formats/onnx/adapters/adapters.h"

namespace decant::onnx {

/// `pads` and `value` moved from attributes to inputs 1 and 2 in opset 11.
Status adapt_pad(Adaptation& a) {
  DECANT_RETURN_IF_ERROR(a.check_moved("pads", 1, 11));
  DECANT_RETURN_IF_ERROR(a.check_moved("value", 2, 11));
  DECANT_RETURN_IF_ERROR(a.attribute_to_input("pads", 1));
  const auto* value = a.node.attribute<float>("value");
  ir::Value* x = a.node.input(0);
  if (value && x) {
    ir::Value* fill = a.scalar("value", x->dtype, *value);
    if (x->dtype == DType::kUndefined) {
      fill = a.graph.add_node("CastLike", {fill, x}, 1, a.node.name + "_value_like")->output(0);
    }
    a.node.set_input(2, fill);
  }
  a.erase("value");
  return ok_status();
}

}  // namespace decant::onnx
