#include "passes/match.h"
#include "passes/passes.h"

namespace decant::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::Value;

/// The branch of an If with a constant condition, or null.
Graph* known_branch(const Node& node) {
  if (!node.is("If")) return nullptr;
  const Value* condition = node.input(0);
  if (!condition || !condition->constant || condition->dtype != DType::kBool) return nullptr;
  const auto number = scalar(condition);
  return number ? ir::subgraph(node, *number != 0 ? "then_branch" : "else_branch") : nullptr;
}

void inline_branch(Graph& graph, Node* node, Graph& branch) {
  const std::vector<Value*> results = branch.outputs();
  graph.absorb(branch);
  for (size_t i = 0; i < node->outputs().size(); ++i) {
    Value* old = node->output(i);
    if (!old) continue;
    Value* result = results[i];
    // An output of the graph keeps its name; a value that has a name of its own to keep gets a copy under it.
    const bool named = !result->producer || graph.is_output(result);
    if (graph.is_output(old) && named) {
      Node* copy = graph.add_node("Identity", {result});
      copy->output(0)->dtype = result->dtype;
      copy->output(0)->kind = result->kind;
      copy->output(0)->shape = result->shape;
      result = copy->output(0);
    }
    replace(graph, old, result);
  }
  graph.remove_node(node);
}

Result<bool> inline_in(Graph& graph, int depth) {
  if (depth > 64) return invalid_model("sub-graphs nested over 64 deep");
  bool changed = false;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {  // what a branch brings is visited too
    Node* node = graph.nodes()[i].get();
    if (!node) continue;
    if (Graph* branch = known_branch(*node); branch && branch->outputs().size() >= node->outputs().size()) {
      inline_branch(graph, node, *branch);
      changed = true;
      continue;
    }
    for (auto& [key, attribute] : node->attributes) {
      auto* sub = std::get_if<std::shared_ptr<Graph>>(&attribute);
      if (!sub || !*sub) continue;
      DECANT_ASSIGN(const bool inner, inline_in(**sub, depth + 1));
      changed = changed || inner;
    }
  }
  if (changed) {
    graph.remove_dead();
    DECANT_RETURN_IF_ERROR(graph.sort());
  }
  return changed;
}

}  // namespace

Result<bool> inline_branches(Graph& graph) { return inline_in(graph, 0); }

}  // namespace decant::passes
