#include "passes/match.h"
#include "passes/passes.h"

namespace decant::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::Value;

/// Masks above this are not looked through.
constexpr int64_t kMaxElements = int64_t{1} << 20;

/// Whether every element of a constant, or of one repeated by Expand, or of Where(such flags, 0, ...), says
/// "attend".
bool is_open(const Value* mask) {
  if (const Node* where = is_float(mask->dtype) ? producer(mask, "Where") : nullptr) {
    const auto on = scalar(where->input(1));
    return on && *on == 0.0 && where->input(0)->dtype == DType::kBool && is_open(where->input(0));
  }
  if (const Node* expand = producer(mask, "Expand")) mask = expand->input(0);
  if (!mask->constant || !mask->constant->in_memory() || mask->constant->elements() > kMaxElements)
    return false;
  const bool flags = mask->dtype == DType::kBool;
  if (!flags && !is_float(mask->dtype)) return false;
  const ir::Tensor t = mask->constant->tensor();
  for (int64_t i = 0; i < t.elements(); ++i) {
    if (t.double_at(i) != (flags ? 1.0 : 0.0)) return false;
  }
  return true;
}

}  // namespace

Result<bool> drop_open_masks(Graph& graph) {
  bool changed = false;
  for (const auto& node : graph.nodes()) {
    if (!node || !node->is("Attention") || node->inputs().size() != 4 || !node->input(3)) continue;
    const Value *mask = node->input(3), *k = node->input(1);
    if (!mask->shape || mask->shape->empty() || !k->shape || k->shape->size() < 3) continue;
    // A mask over fewer keys hides the others.
    const ir::Dim &covered = mask->shape->back(), &keys = (*k->shape)[k->shape->size() - 2];
    if ((covered != keys && covered != ir::Dim(1)) || !is_open(mask)) continue;
    node->set_input(3, nullptr);
    changed = true;
  }
  return changed;
}

}  // namespace decant::passes
