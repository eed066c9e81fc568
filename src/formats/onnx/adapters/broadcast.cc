#include <fmt/format.h>

#include "formats/onnx/adapters/adapters.h"

namespace decant::onnx {
namespace {

/// Gives input 1 trailing dims of 1, so that its first dim stands at `axis` of input 0.
Status align(Adaptation& a, int64_t axis) {
  const ir::Value *x = a.node.input(0), *y = a.node.input(1);
  if (!x || !y) return ok_status();
  if (!x->shape || !y->shape) {
    return unsupported(fmt::format("{}: broadcasting along an axis (opset {}) needs known ranks",
                                   a.node.describe(), a.opset));
  }
  const auto rank = static_cast<int64_t>(x->shape->size()), other = static_cast<int64_t>(y->shape->size());
  if (axis < 0) axis += rank;
  if (axis < 0 || axis + other > rank) return a.mismatch("the broadcast axis does not fit the ranks");
  std::vector<int64_t> added;
  for (int64_t i = other; i < rank - axis; ++i) added.push_back(i);
  if (added.empty()) return ok_status();
  ir::Node* aligned =
      a.graph.add_node("Unsqueeze", {a.node.input(1), a.ints("axes", added)}, 1, a.node.name + "_aligned");
  a.node.set_input(1, aligned->output(0));
  return ok_status();
}

}  // namespace

/// Before opset 7 arithmetic, comparisons and logic broadcast only with `broadcast`, from dim `axis` on (by
/// default along the last dims, as now).
Status adapt_broadcast(Adaptation& a) {
  if (a.opset >= 7) return ok_status();
  const int64_t* axis = a.node.attribute<int64_t>("axis");
  if (axis && a.node.int_attribute("broadcast", 0) != 0) DECANT_RETURN_IF_ERROR(align(a, *axis));
  a.erase("axis");
  a.erase("broadcast");
  return ok_status();
}

/// Before opset 7 the slope has one element for each channel, or one for all.
Status adapt_prelu(Adaptation& a) {
  const ir::Value* slope = a.node.input(1);
  if (a.opset >= 7 || !slope || !slope->shape || slope->shape->size() != 1) return ok_status();
  if ((*slope->shape)[0] == ir::Dim(1)) return ok_status();
  return align(a, 1);
}

}  // namespace decant::onnx
