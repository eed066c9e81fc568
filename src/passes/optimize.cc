#include <initializer_list>

#include "ir/op.h"
#include "passes/passes.h"

namespace decant::passes {
namespace {

/// One round over a graph and its sub-graphs.
Status clean_scope(ir::Graph& graph, int depth, bool* changed) {
  if (depth > 64) return invalid_model("sub-graphs nested over 64 deep");
  for (const auto& node : graph.nodes()) {
    if (!node) continue;
    for (auto& [key, attribute] : node->attributes) {
      auto* sub = std::get_if<std::shared_ptr<ir::Graph>>(&attribute);
      if (sub && *sub) DECANT_RETURN_IF_ERROR(clean_scope(**sub, depth + 1, changed));
    }
  }
  DECANT_ASSIGN(const bool folded, fold_constants(graph));
  DECANT_ASSIGN(const bool simpler, simplify(graph));
  DECANT_ASSIGN(const bool fewer, merge_equal(graph));
  graph.remove_dead();
  *changed = *changed || folded || simpler || fewer;
  return graph.sort();
}

Status clean(ir::Graph& graph) {
  for (int round = 0; round < 4; ++round) {
    bool changed = false;
    DECANT_RETURN_IF_ERROR(clean_scope(graph, 0, &changed));
    DECANT_ASSIGN(const bool inlined, inline_branches(graph));
    DECANT_RETURN_IF_ERROR(ir::infer_types(graph));
    if (inlined) --round;  // each takes an If away
    if (!changed && !inlined) break;
  }
  return ok_status();
}

using Pass = Result<bool> (*)(ir::Graph&);

/// Lifts patterns of a graph, and then of its branches and bodies.
Status lift_scope(ir::Graph& graph, int depth) {
  if (depth > 64) return invalid_model("sub-graphs nested over 64 deep");
  for (Pass pass : {&gather_rows, &split_gemm, &lift_tensor_scatter, &lift_norms, &lift_gelu, &lift_swiglu,
                    &lift_rotary, &lift_attention, &fold_weight_transpose, &fold_batch_norm}) {
    DECANT_RETURN_IF_ERROR(pass(graph).status());
  }
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    if (!graph.nodes()[i]) continue;
    for (auto& [key, attribute] : graph.nodes()[i]->attributes) {
      auto* sub = std::get_if<std::shared_ptr<ir::Graph>>(&attribute);
      if (sub && *sub) DECANT_RETURN_IF_ERROR(lift_scope(**sub, depth + 1));
    }
  }
  return ok_status();
}

Status lift(ir::Graph& graph, std::initializer_list<Pass> more) {
  DECANT_RETURN_IF_ERROR(correct_labels(graph).status());
  DECANT_RETURN_IF_ERROR(name_scalar_inputs(graph).status());
  DECANT_RETURN_IF_ERROR(ir::infer_types(graph));
  // Before small stacks of matrices fold into their parts.
  DECANT_RETURN_IF_ERROR(lift_grouped_matmul(graph).status());
  DECANT_RETURN_IF_ERROR(clean(graph));
  DECANT_RETURN_IF_ERROR(detect_states(graph).status());
  DECANT_RETURN_IF_ERROR(lift_scope(graph, 0));
  for (Pass pass : more) DECANT_RETURN_IF_ERROR(pass(graph).status());
  return clean(graph);
}

}  // namespace

Status optimize_for_forward(ir::Graph& graph) {
  return lift(graph, {&drop_open_masks, &join_heads, &widen_half});
}

Status optimize_with_fixed_caches(ir::Graph& graph) {
  return lift(graph, {+[](ir::Graph& g) -> Result<bool> {
                        DECANT_ASSIGN(const bool fixed, fix_states(g));
                        if (!fixed)
                          return unsupported("its caches do not grow by a Concat that only attention reads");
                        return true;
                      },
                      &widen_half});
}

Status optimize_for_generation(ir::Graph& graph) {
  return lift(graph, {&fix_states, &keep_last_logits, &widen_half});
}

}  // namespace decant::passes
