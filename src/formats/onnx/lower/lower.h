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

/// Rewrites, in place, products with packed weights (MatMul, FusedMatMul) as com.microsoft MatMulNBits and
/// look-ups in packed tables (Gather) as GatherBlockQuantized, sub-graphs included. A table that is also a
/// head is stored once. Packed weights that have no such form (ir::row_blocks) stay: the writer decodes them.
/// `accuracy_level` goes to every MatMulNBits when it is above 0: 4 lets ONNX Runtime round activations to 8
/// bits. Call before lower_to_opset; the graph must be typed.
Status lower_packed_weights(ir::Graph& graph, int accuracy_level);

}  // namespace decant::onnx
