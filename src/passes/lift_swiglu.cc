#include "passes/match.h"
#include "passes/passes.h"

namespace decant::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::Value;

/// The Swish of x · sigmoid(α · x), with x on either side.
Result<Value*> swish_of(Graph& graph, Node& node) {
  if (!node.is("Mul")) return nullptr;
  for (size_t side = 0; side < 2; ++side) {
    Node* sigmoid = producer(node.input(side), "Sigmoid");
    Value* x = node.input(1 - side);
    if (!sigmoid) continue;
    if (sigmoid->input(0) == x) return add_typed(graph, "Swish", {x});
    Node* scaled = producer(sigmoid->input(0), "Mul");
    const auto alpha = scaled ? scalar_side(scaled) : std::nullopt;
    if (alpha && alpha->rest == x)
      return add_typed(graph, "Swish", {x}, {{"alpha", static_cast<float>(alpha->number)}});
  }
  return nullptr;
}

/// The SwiGLU of swish(g) · u, when nothing else reads the Swish.
Result<Value*> swiglu_of(Graph& graph, Node& node) {
  if (!node.is("Mul")) return nullptr;
  for (size_t side = 0; side < 2; ++side) {
    Value *gate = node.input(side), *up = node.input(1 - side);
    Node* swish = producer(gate, "Swish");
    if (!swish || swish->float_attribute("alpha", 1.0f) != 1.0f || gate->users().size() != 1 ||
        !gate->shape || !up->shape || *gate->shape != *up->shape)
      continue;
    return add_typed(graph, "SwiGLU", {swish->input(0), up}, swish->attributes);
  }
  return nullptr;
}

}  // namespace

Result<bool> lift_swiglu(Graph& graph) {
  DECANT_ASSIGN(const bool first, rewrite(graph, [&](Node& node) { return swish_of(graph, node); }));
  DECANT_ASSIGN(const bool second, rewrite(graph, [&](Node& node) { return swiglu_of(graph, node); }));
  return first || second;
}

}  // namespace decant::passes
