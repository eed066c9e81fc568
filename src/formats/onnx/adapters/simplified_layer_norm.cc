#include "formats/onnx/adapters/adapters.h"

namespace decant::onnx {
namespace {

/// RMSNormalization with the vendor operator's attributes; its own default epsilon is 1e-5 as well.
ir::Value* rms_norm(Adaptation& a, ir::Value* x, ir::Value* scale, int64_t axis) {
  ir::Node* norm = a.graph.add_node("RMSNormalization", {x, scale}, 1, a.node.name + "_rms");
  norm->attributes["axis"] = axis;
  norm->attributes["epsilon"] = a.node.float_attribute("epsilon", 1e-5f);
  norm->attributes["stash_type"] = int64_t{1};
  return norm->output(0);
}

Status check_unused(const Adaptation& a, size_t i, std::string_view what) {
  const ir::Value* v = a.node.output(i);
  if (!v || (v->users().empty() && !a.graph.is_output(v))) return ok_status();
  return unsupported(a.node.describe() + ": output '" + std::string(what) + "' is not supported");
}

}  // namespace

/// SimplifiedLayerNormalization(X, scale) -> Y, [inv_std_var]: what ONNX later named RMSNormalization.
Status adapt_simplified_layer_norm(Adaptation& a) {
  DECANT_RETURN_IF_ERROR(check_unused(a, 1, "inv_std_var"));
  if (!a.node.input(0) || !a.node.input(1)) return invalid_model(a.node.describe() + " needs two inputs");
  if (a.node.int_attribute("stash_type", 1) != 1)
    return unsupported(a.node.describe() + ": stash_type other than 1");
  a.replace_output(0, rms_norm(a, a.node.input(0), a.node.input(1), a.node.int_attribute("axis", -1)));
  a.remove();
  return ok_status();
}

/// SkipSimplifiedLayerNormalization(x, skip, gamma, [bias]) -> norm(x + skip + bias), _, _, x + skip + bias.
Status adapt_skip_simplified_layer_norm(Adaptation& a) {
  DECANT_RETURN_IF_ERROR(check_unused(a, 1, "mean"));
  DECANT_RETURN_IF_ERROR(check_unused(a, 2, "inv_std_var"));
  if (!a.node.input(0) || !a.node.input(1) || !a.node.input(2)) {
    return invalid_model(a.node.describe() + " needs three inputs");
  }
  ir::Value* sum =
      a.graph.add_node("Add", {a.node.input(0), a.node.input(1)}, 1, a.node.name + "_add")->output(0);
  if (ir::Value* bias = a.node.input(3)) {
    sum = a.graph.add_node("Add", {sum, bias}, 1, a.node.name + "_bias")->output(0);
  }
  ir::Value* normed = rms_norm(a, sum, a.node.input(2), -1);
  a.replace_output(0, normed);
  a.replace_output(3, sum);
  a.remove();
  return ok_status();
}

}  // namespace decant::onnx
