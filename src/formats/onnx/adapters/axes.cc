#include "formats/onnx/adapters/adapters.h"

namespace decant::onnx {

/// `axes` moved from an attribute to input 1 (Squeeze, Unsqueeze, ReduceSum: opset 13; other reductions:
/// opset 18).
Status adapt_axes(Adaptation& a, int64_t since) {
  DECANT_RETURN_IF_ERROR(a.check_moved("axes", 1, since));
  return a.attribute_to_input("axes", 1);
}

}  // namespace decant::onnx
