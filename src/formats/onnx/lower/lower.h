#pragma once

#include "base/status.h"
#include "ir/graph.h"

namespace decant::onnx {

/// Rewrites, in place, every node (sub-graphs included) that ONNX operators of version `opset` do not have
/// into nodes they do have, and puts arguments where that version wants them. The graph must be typed
/// (ir::infer_types); it stays typed and sorted. patterns.md beside this file lists what each operator
/// becomes: whoever recognises decomposed operators recognises exactly that.
///
/// Errors: invalid_argument (opset outside 13 to 28), unsupported (names the node, its operator, the opset
/// and what has no counterpart). The graph is then partly rewritten and of no more use.
Status lower_to_opset(ir::Graph& graph, int opset);

}  // namespace decant::onnx
