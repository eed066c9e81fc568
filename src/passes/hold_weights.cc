#include <map>

#include "passes/match.h"
#include "passes/passes.h"

namespace decant::passes {

Result<bool> hold_weights(ir::Graph& graph, DType dtype) {
  std::map<const ir::Value*, ir::Value*> held;
  return rewrite(graph, [&](ir::Node& node) -> Result<ir::Value*> {
    const bool fused = node.op() == "FusedMatMul" && node.domain() == "com.microsoft";
    if (!node.is("MatMul") && !fused) return nullptr;
    ir::Value *x = node.input(0), *matrix = node.input(1);
    if (!matrix->constant || matrix->constant->packed() || matrix->constant->dims().size() != 2 ||
        x->dtype != DType::kFloat32 || !is_float(matrix->dtype) || matrix->dtype == DType::kFloat64 ||
        matrix->dtype == dtype)
      return nullptr;
    ir::Value*& weight = held[matrix];
    if (!weight) {
      weight = graph.add_constant(graph.unique_name(matrix->name + "_held"),
                                  ir::cast_constant(matrix->constant, dtype));
    }
    return add_typed(graph, "FusedMatMul", {x, weight}, node.attributes, "com.microsoft");
  });
}

}  // namespace decant::passes
