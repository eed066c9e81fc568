#include "formats/onnx/adapters/adapters.h"

namespace decant::onnx {

/// Before opset 13 the input is taken as a matrix, rows being the dims before `axis` (default 1), and each
/// row is normalised as a whole. That is the new form when `axis` is the last one; otherwise the matrix is
/// made explicitly.
Status adapt_softmax(Adaptation& a) {
  if (a.opset >= 13) return ok_status();
  const int64_t axis = a.node.int_attribute("axis", 1);
  ir::Value* x = a.node.input(0);
  if (!x) return ok_status();
  if (axis == -1 || (x->shape && axis == static_cast<int64_t>(x->shape->size()) - 1)) {
    a.node.attributes["axis"] = int64_t{-1};
    return ok_status();
  }
  const std::string name = a.node.name;
  ir::Node* flat = a.graph.add_node("Flatten", {x}, 1, name + "_flatten");
  flat->attributes["axis"] = axis;
  ir::Node* soft = a.graph.add_node(a.node.op(), {flat->output(0)}, 1, name + "_rows");
  soft->attributes["axis"] = int64_t{-1};
  ir::Node* shape = a.graph.add_node("Shape", {x}, 1, name + "_shape");
  ir::Node* back = a.graph.add_node("Reshape", {soft->output(0), shape->output(0)}, 1, name + "_reshape");
  back->attributes["allowzero"] = int64_t{1};
  a.replace_output(0, back->output(0));
  a.remove();
  return ok_status();
}

}  // namespace decant::onnx
