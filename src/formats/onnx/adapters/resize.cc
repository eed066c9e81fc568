#include <algorithm>

#include <fmt/format.h>

#include "formats/onnx/adapters/adapters.h"

namespace decant::onnx {
namespace {

/// Before opset 11 positions are x / scale; nearest rounds down, or up when the axes shrink.
void set_old_form(ir::Node& resize, const ir::Value* scales) {
  bool shrinks = false;
  if (scales && scales->constant && scales->constant->in_memory() && scales->constant->elements() <= 64) {
    const ir::Tensor t = scales->constant->tensor();
    for (int64_t i = 0; i < t.elements(); ++i) shrinks = shrinks || t.double_at(i) < 1;
  }
  resize.attributes["coordinate_transformation_mode"] = std::string("asymmetric");
  resize.attributes["nearest_mode"] = std::string(shrinks ? "ceil" : "floor");
}

}  // namespace

/// Opset 10 had scales as input 1, without a region and with one coordinate rule.
Status adapt_resize(Adaptation& a) {
  if (a.opset >= 11) {
    if (a.node.input(1) == nullptr || a.node.input(2) != nullptr || a.node.input(3) != nullptr)
      return ok_status();
    return a.mismatch("scales are input 2 since opset 11");
  }
  ir::Value* scales = a.node.input(1);
  if (!scales || a.node.input(2)) return a.mismatch("Resize takes an input and scales before opset 11");
  set_old_form(a.node, scales);
  a.node.set_input(2, scales);
  a.node.set_input(1, nullptr);
  return ok_status();
}

/// Upsample (scales an attribute until opset 8, then input 1) became Resize in opset 10.
Status adapt_upsample(Adaptation& a) {
  if (a.opset >= 10) return a.mismatch("Upsample was replaced by Resize in opset 10");
  ir::Value* scales = a.node.input(1);
  if (const auto* list = a.node.attribute<std::vector<float>>("scales")) {
    if (scales) return a.mismatch("scales are given twice");
    auto owned = std::make_shared<std::vector<float>>(*list);
    scales = a.graph.add_constant(
        a.graph.unique_name(a.node.name + "_scales"),
        ir::Constant::from_tensor(
            ir::Tensor::view(DType::kFloat32, {static_cast<int64_t>(owned->size())}, owned->data(), owned)));
  }
  if (!scales || !a.node.input(0)) return a.mismatch("Upsample needs an input and scales");
  ir::Node* node = a.graph.add_node("Resize", {a.node.input(0), nullptr, scales}, 1, a.node.name + "_resize");
  const std::string mode = a.node.string_attribute("mode", "nearest");
  node->attributes["mode"] = mode == "bilinear" ? std::string("linear") : mode;
  set_old_form(*node, scales);
  a.replace_output(0, node->output(0));
  a.remove();
  return ok_status();
}

/// Modes were named after two axes before opset 20.
Status adapt_grid_sample(Adaptation& a) {
  const auto* mode = a.node.attribute<std::string>("mode");
  if (a.opset >= 20 || mode == nullptr) return ok_status();
  if (*mode == "bilinear")
    a.node.attributes["mode"] = std::string("linear");
  else if (*mode == "bicubic")
    a.node.attributes["mode"] = std::string("cubic");
  return ok_status();
}

/// Regions were not shifted by half a pixel before opset 16.
Status adapt_roi_align(Adaptation& a) {
  if (a.opset < 16) a.node.attributes["coordinate_transformation_mode"] = std::string("output_half_pixel");
  return ok_status();
}

}  // namespace decant::onnx
