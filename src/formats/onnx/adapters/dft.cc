#include "formats/onnx/adapters/adapters.h"

namespace decant::onnx {

/// `axis` moved from an attribute (default 1) to input 2 (default -2) in opset 20.
Status adapt_dft(Adaptation& a) {
  DECANT_RETURN_IF_ERROR(a.check_moved("axis", 2, 20));
  if (a.opset >= 20) return ok_status();
  a.node.set_input(2, a.int_scalar("axis", a.node.int_attribute("axis", 1)));
  a.erase("axis");
  return ok_status();
}

}  // namespace decant::onnx
