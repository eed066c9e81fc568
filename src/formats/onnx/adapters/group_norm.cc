#include "formats/onnx/adapters/adapters.h"

namespace decant::onnx {

/// Before opset 21 scale and bias have one element for each group; now one for each channel. Each element is
/// repeated channels / num_groups times.
Status adapt_group_norm(Adaptation& a) {
  if (a.opset >= 21) return ok_status();
  const int64_t groups = a.node.int_attribute("num_groups", 0);
  ir::Value* x = a.node.input(0);
  if (!x || groups <= 0) return ok_status();
  const std::string name = a.node.name;
  ir::Node* channels = a.graph.add_node("Shape", {x}, 1, name + "_channels");
  channels->attributes["start"] = int64_t{1};
  channels->attributes["end"] = int64_t{2};
  ir::Value* count = a.ints("groups", {groups});
  ir::Node* each = a.graph.add_node("Div", {channels->output(0), count}, 1, name + "_group_size");
  ir::Node* shape = a.graph.add_node("Concat", {count, each->output(0)}, 1, name + "_repeated_shape");
  shape->attributes["axis"] = int64_t{0};
  ir::Value *column = a.ints("column", {groups, 1}), *flat = a.ints("flat", {-1});
  for (size_t i = 1; i < 3; ++i) {
    ir::Value* by_group = a.node.input(i);
    if (!by_group) continue;
    ir::Node* reshaped = a.graph.add_node("Reshape", {by_group, column}, 1, name + "_column");
    ir::Node* repeated =
        a.graph.add_node("Expand", {reshaped->output(0), shape->output(0)}, 1, name + "_repeated");
    ir::Node* by_channel = a.graph.add_node("Reshape", {repeated->output(0), flat}, 1, name + "_by_channel");
    a.node.set_input(i, by_channel->output(0));
  }
  return ok_status();
}

}  // namespace decant::onnx
