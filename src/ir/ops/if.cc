#include <memory>
#include <string>

#include <fmt/format.h>

#include "ir/ops/common.h"
#include "ir/ops/joined_types.h"

namespace decant::ir {
namespace {

/// What both branches agree on is known of an output; where dims differ, a fresh symbol stands.
Status infer_if(InferContext& context) {
  const Node& node = context.node();
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_bool, "a bool"));
  const auto* then_branch = node.attribute<std::shared_ptr<Graph>>("then_branch");
  const auto* else_branch = node.attribute<std::shared_ptr<Graph>>("else_branch");
  if (then_branch == nullptr || !*then_branch || else_branch == nullptr || !*else_branch) {
    return context.error("then_branch and else_branch are needed");
  }
  const int64_t mark = context.graph().symbol_mark();
  DECANT_RETURN_IF_ERROR(infer_subgraph(context.graph(), **then_branch));
  DECANT_RETURN_IF_ERROR(infer_subgraph(context.graph(), **else_branch));
  const auto &a = (*then_branch)->outputs(), &b = (*else_branch)->outputs();
  if (a.size() != b.size() || a.size() < node.outputs().size()) {
    return context.error(fmt::format("branches have {} and {} outputs", a.size(), b.size()));
  }
  for (size_t i = 0; i < node.outputs().size(); ++i) {
    if (a[i]->dtype != b[i]->dtype)
      return context.error(fmt::format("branches differ in the type of output {}", i));
    const auto kind = joined_kind(a[i]->kind, b[i]->kind);
    if (!kind) return context.error(fmt::format("branches differ in the kind of output {}", i));
    std::optional<Shape> shape;
    if (a[i]->shape && b[i]->shape && a[i]->shape->size() == b[i]->shape->size()) {
      shape.emplace();
      for (size_t d = 0; d < a[i]->shape->size(); ++d) {
        const bool same =
            (*a[i]->shape)[d] == (*b[i]->shape)[d] && !Graph::made_since((*a[i]->shape)[d], mark);
        shape->push_back(same ? (*a[i]->shape)[d] : context.fresh_symbol("branch"));
      }
    }
    if (is_sequence(*kind) && shape != a[i]->shape) shape.reset();
    context.set_output(i, a[i]->dtype, std::move(shape), *kind);
    if (node.output(i) != nullptr && a[i]->elements && a[i]->elements == b[i]->elements) {
      context.set_elements(i, *a[i]->elements);
    }
  }
  return ok_status();
}

}  // namespace

DECANT_OP(If) {
  return {.name = "If",
          .doc = "Runs one of two sub-graphs",
          .min_inputs = 1,
          .max_inputs = 1,
          .max_outputs = -1,
          .any_dtype = true,
          .infer = infer_if,
          .eval = nullptr};
}

}  // namespace decant::ir
