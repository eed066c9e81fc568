#pragma once

#include "ir/graph.h"

namespace decant::onnx {

/// First opset (at least 13) that has a node of the ai.onnx domain as it is: its operator, the attributes and
/// inputs it uses. 13 for operators that did not change since.
int needed_opset(const ir::Node& node);

}  // namespace decant::onnx
