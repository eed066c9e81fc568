#include "formats/onnx/adapters/adapters.h"

namespace decant::onnx {

/// `split` moved from an attribute to input 1 in opset 13; since 18, equal parts need `num_outputs`.
Status adapt_split(Adaptation& a) {
  DECANT_RETURN_IF_ERROR(a.check_moved("split", 1, 13));
  if (a.opset < 18 && a.has("num_outputs")) return a.mismatch("'num_outputs' came with opset 18");
  DECANT_RETURN_IF_ERROR(a.attribute_to_input("split", 1));
  if (!a.node.input(1) && !a.has("num_outputs")) {
    if (a.opset >= 18) return a.mismatch("'num_outputs' or input 1 is required since opset 18");
    a.node.attributes["num_outputs"] = static_cast<int64_t>(a.node.outputs().size());
  }
  return ok_status();
}

}  // namespace decant::onnx
