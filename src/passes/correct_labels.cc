#include "passes/match.h"
#include "passes/passes.h"

namespace decant::passes {

Result<bool> correct_labels(ir::Graph& graph) {
  const ir::Value* ids = nullptr;
  for (const ir::Value* v : graph.inputs()) {
    if (v->name == "input_ids" && v->shape && v->shape->size() == 2) ids = v;
  }
  if (!ids || (*ids->shape)[1].symbol_name().empty()) return false;
  bool changed = false;
  for (ir::Value* v : graph.inputs()) {
    if (!v->shape) continue;
    for (ir::Dim& d : *v->shape) {
      const ir::Dim past = d - ir::Dim(1);
      if (past.symbol_name().empty()) continue;
      d = past + (*ids->shape)[1];
      changed = true;
    }
  }
  return changed;
}

}  // namespace decant::passes
