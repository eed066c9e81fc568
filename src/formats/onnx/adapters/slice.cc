#include "formats/onnx/adapters/adapters.h"

namespace decant::onnx {

/// `starts`, `ends` and `axes` moved from attributes to inputs 1 to 3 in opset 10.
Status adapt_slice(Adaptation& a) {
  DECANT_RETURN_IF_ERROR(a.check_moved("starts", 1, 10));
  DECANT_RETURN_IF_ERROR(a.check_moved("ends", 2, 10));
  DECANT_RETURN_IF_ERROR(a.check_moved("axes", 3, 10));
  DECANT_RETURN_IF_ERROR(a.attribute_to_input("starts", 1));
  DECANT_RETURN_IF_ERROR(a.attribute_to_input("ends", 2));
  return a.attribute_to_input("axes", 3);
}

}  // namespace decant::onnx
