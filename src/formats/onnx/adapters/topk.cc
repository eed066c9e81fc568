#include "formats/onnx/adapters/adapters.h"

namespace decant::onnx {

/// `k` moved from an attribute to input 1 (a tensor of one element) in opset 10.
Status adapt_topk(Adaptation& a) {
  DECANT_RETURN_IF_ERROR(a.check_moved("k", 1, 10));
  if (const auto* k = a.node.attribute<int64_t>("k")) {
    a.node.set_input(1, a.ints("k", {*k}));
    a.erase("k");
  }
  return ok_status();
}

}  // namespace decant::onnx
