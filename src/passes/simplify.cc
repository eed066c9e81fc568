#include "passes/match.h"
#include "passes/passes.h"

namespace decant::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::Value;

bool identity_permutation(const Node& node) {
  const auto* perm = node.attribute<std::vector<int64_t>>("perm");
  if (!perm) return node.input(0)->shape && node.input(0)->shape->size() < 2;
  for (size_t i = 0; i < perm->size(); ++i) {
    if ((*perm)[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

bool same_type(const Value* a, const Value* b) {
  return a->dtype == b->dtype && a->shape && b->shape && *a->shape == *b->shape;
}

/// The input that the node returns unchanged, or null.
Value* unchanged_input(const Node& node) {
  Value *x = node.input(0), *y = node.output(0);
  if (!x || !y) return nullptr;
  if (node.is("Identity")) return x;
  if (node.is("Cast") && x->dtype == y->dtype && x->dtype != DType::kUndefined) return x;
  if (node.is("Transpose") && identity_permutation(node)) return x;
  if ((node.is("Expand") || node.is("Reshape")) && same_type(x, y)) return x;
  if (node.is("Concat") && node.inputs().size() == 1) return x;
  if (node.is("Slice") && same_type(x, y)) {
    // A part as long as the whole, in its order, is the whole.
    const auto steps = node.input(4) ? ints(node.input(4)) : std::vector<int64_t>{};
    bool forward = steps.has_value();
    for (size_t i = 0; forward && i < steps->size(); ++i) forward = (*steps)[i] == 1;
    if (forward) return x;
  }
  const bool add = node.is("Add") || node.is("Sub"), multiply = node.is("Mul") || node.is("Div");
  if (add || multiply) {
    const double neutral = add ? 0.0 : 1.0;
    if (auto n = scalar(node.input(1)); n && *n == neutral && same_type(x, y)) return x;
    if (node.is("Add") || node.is("Mul")) {
      if (auto n = scalar(x); n && *n == neutral && same_type(node.input(1), y)) return node.input(1);
    }
  }
  return nullptr;
}

}  // namespace

Result<bool> simplify(Graph& graph) {
  bool changed = false;
  for (const auto& node : graph.nodes()) {
    if (!node || node->outputs().empty()) continue;
    Value* y = node->output(0);
    if (!y || y->users().empty() || graph.is_output(y)) continue;
    if (Value* x = unchanged_input(*node)) {
      graph.replace_all_uses(y, x);
      changed = true;
      continue;
    }
    // Transpose of Transpose: one does for both.
    if (Node* inner = node->is("Transpose") ? producer(node->input(0), "Transpose") : nullptr) {
      const auto* outer_perm = node->attribute<std::vector<int64_t>>("perm");
      const auto* inner_perm = inner->attribute<std::vector<int64_t>>("perm");
      if (outer_perm && inner_perm && outer_perm->size() == inner_perm->size()) {
        std::vector<int64_t> both;
        for (const int64_t axis : *outer_perm) both.push_back((*inner_perm)[static_cast<size_t>(axis)]);
        node->attributes["perm"] = both;
        node->set_input(0, inner->input(0));
        changed = true;
      }
    }
    // Reshape of Reshape: the outer one can read the inner one's input.
    if (Node* inner = node->is("Reshape") ? producer(node->input(0), "Reshape") : nullptr) {
      const auto shape = ints(node->input(1));
      bool copies_dims = !shape.has_value();
      if (shape) {
        for (int64_t d : *shape) copies_dims = copies_dims || d == 0;
      }
      if (!copies_dims) {
        node->set_input(0, inner->input(0));
        changed = true;
      }
    }
  }
  return changed;
}

Result<bool> fold_weight_transpose(Graph& graph) {
  return rewrite(graph, [&](Node& node) -> Result<Value*> {
    if (!node.is("MatMul")) return nullptr;
    Node* transpose = producer(node.input(1), "Transpose");
    if (!transpose || identity_permutation(*transpose)) return nullptr;
    Value* matrix = transpose->input(0);
    if (!matrix->constant || matrix->constant->dims().size() != 2) return nullptr;
    return add_typed(graph, "FusedMatMul", {node.input(0), matrix}, {{"transB", int64_t{1}}},
                     "com.microsoft");
  });
}

}  // namespace decant::passes
