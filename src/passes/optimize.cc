#include "ir/op.h"
#include "passes/passes.h"

namespace decant::passes {
namespace {

Status clean(ir::Graph& graph) {
  for (int round = 0; round < 4; ++round) {
    DECANT_ASSIGN(const bool folded, fold_constants(graph));
    DECANT_ASSIGN(const bool simpler, simplify(graph));
    graph.remove_dead();
    DECANT_RETURN_IF_ERROR(graph.sort());
    DECANT_RETURN_IF_ERROR(ir::infer_types(graph));
    if (!folded && !simpler) break;
  }
  return ok_status();
}

}  // namespace

Status optimize(ir::Graph& graph) {
  DECANT_ASSIGN(bool named, name_scalar_inputs(graph));
  (void)named;
  DECANT_RETURN_IF_ERROR(ir::infer_types(graph));
  DECANT_RETURN_IF_ERROR(clean(graph));
  using Pass = Result<bool> (*)(ir::Graph&);
  bool changed = false;
  for (Pass pass : {&detect_states, &lift_tensor_scatter, &lift_rms_norm, &lift_swiglu, &lift_rotary, &lift_attention, &fold_weight_transpose,
                    &fix_states, &widen_half}) {
    DECANT_ASSIGN(const bool did, pass(graph));
    changed = changed || did;
  }
  return changed ? clean(graph) : ok_status();
}

}  // namespace decant::passes
