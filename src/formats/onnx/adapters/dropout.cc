#include <fmt/format.h>

#include "formats/onnx/adapters/adapters.h"
#include "ir/ops/elements.h"

namespace decant::onnx {

namespace {

/// The mask when nothing is dropped: ones of the input's shape, bools since opset 10 and before that of the
/// input's type.
Status replace_mask(Adaptation& a) {
  const ir::Value* x = a.node.input(0);
  const DType dtype = a.opset >= 10 ? DType::kBool : x->dtype;
  if (dtype == DType::kUndefined) {
    return unsupported(a.node.describe() +
                       ": the mask output is not supported where the input's type is unknown");
  }
  DECANT_ASSIGN(ir::Tensor one, ir::make_tensor<int64_t>(dtype, {1}, {1}));
  ir::Node* shape = a.graph.add_node("Shape", {a.node.input(0)}, 1, a.node.name + "_shape");
  ir::Node* ones = a.graph.add_node("ConstantOfShape", {shape->output(0)}, 1, a.node.name + "_mask");
  ones->attributes["value"] = ir::Constant::from_tensor(std::move(one));
  a.replace_output(1, ones->output(0));
  return ok_status();
}

}  // namespace

/// Outside training Dropout passes its input on. A training mode that is not constant false is not supported.
Status adapt_dropout(Adaptation& a) {
  DECANT_RETURN_IF_ERROR(a.check_moved("ratio", 1, 12));
  if (a.opset < 7 && a.node.int_attribute("is_test", 0) == 0) {
    return unsupported(a.node.describe() + ": training mode is not supported; export the model in eval mode");
  }
  const ir::Value* mode = a.node.input(2);
  if (mode &&
      !(mode->constant && mode->constant->elements() == 1 && mode->constant->tensor().int_at(0) == 0)) {
    return unsupported(a.node.describe() + ": training mode is not supported; export the model in eval mode");
  }
  if (!a.node.input(0)) return invalid_model(a.node.describe() + " has no input");
  if (const ir::Value* mask = a.node.output(1); mask && (!mask->users().empty() || a.is_graph_output(mask))) {
    DECANT_RETURN_IF_ERROR(replace_mask(a));
  }
  ir::Node* identity = a.graph.add_node("Identity", {a.node.input(0)}, 1, a.node.name + "_identity");
  a.replace_output(0, identity->output(0));
  a.remove();
  return ok_status();
}

}  // namespace decant::onnx
