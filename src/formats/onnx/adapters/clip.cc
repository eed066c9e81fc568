#include "formats/onnx/adapters/adapters.h"

namespace decant::onnx {

/// Bounds moved from attributes `min` and `max` to inputs 1 and 2 in opset 11.
Status adapt_clip(Adaptation& a) {
  DECANT_RETURN_IF_ERROR(a.check_moved("min", 1, 11));
  DECANT_RETURN_IF_ERROR(a.check_moved("max", 2, 11));
  if (!a.has("min") && !a.has("max")) return ok_status();
  // The bounds must have the input's type, known here only when the input is typed; float32 otherwise, and
  // then CastLike makes them fit.
  const ir::Value* x = a.node.input(0);
  if (!x) return ok_status();
  size_t i = 0;
  for (const char* key : {"min", "max"}) {
    ++i;
    const auto* bound = a.node.attribute<float>(key);
    if (!bound) continue;
    ir::Value* value = a.scalar(key, x->dtype, *bound);
    if (x->dtype == DType::kUndefined) {
      value = a.graph.add_node("CastLike", {value, a.node.input(0)}, 1, a.node.name + "_" + key)->output(0);
    }
    a.node.set_input(i, value);
    a.erase(key);
  }
  return ok_status();
}

}  // namespace decant::onnx
