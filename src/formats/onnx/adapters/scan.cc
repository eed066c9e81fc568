#include "formats/onnx/adapters/adapters.h"

namespace decant::onnx {

/// Scan of opset 8 works on batches: every operand has a batch axis in front, and each sample is scanned along
/// axis 1. That is a scan over the batch of the scan that came with opset 9. (Lengths per sample are not taken.)
Status adapt_scan(Adaptation& a) {
  if (a.opset > 8) return ok_status();
  const auto* body = a.node.attribute<std::shared_ptr<ir::Graph>>("body");
  if (!body || !*body) return a.mismatch("attribute 'body' is missing");
  if (a.node.input(0)) return unsupported(a.node.describe() + ": 'sequence_lens' is not supported");
  auto batch = std::make_shared<ir::Graph>();
  batch->name = a.node.name + "_batch";
  std::vector<ir::Value*> operands;
  const size_t count = a.node.inputs().size();
  for (size_t i = 1; i < count; ++i) {
    operands.push_back(batch->add_input(batch->unique_name("sample"), DType::kUndefined, std::nullopt));
    a.node.set_input(i - 1, a.node.input(i));
  }
  a.node.drop_last_input();
  ir::Node* scan = batch->add_node("Scan", operands, a.node.outputs().size(), a.node.name);
  scan->attributes["body"] = *body;
  scan->attributes["num_scan_inputs"] = a.node.int_attribute("num_scan_inputs", 0);
  if (const auto* directions = a.node.attribute<std::vector<int64_t>>("directions")) {
    scan->attributes["scan_input_directions"] = *directions;
    a.erase("directions");
  }
  for (ir::Value* v : scan->outputs()) batch->add_output(v);
  a.node.attributes["num_scan_inputs"] = static_cast<int64_t>(count) - 1;
  a.node.attributes["body"] = batch;
  return ok_status();
}

}  // namespace decant::onnx
