#include "passes/match.h"
#include "passes/passes.h"

namespace decant::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::Value;

bool swaps_heads(const Node* transpose) {
  const auto* perm = transpose ? transpose->attribute<std::vector<int64_t>>("perm") : nullptr;
  return perm && *perm == std::vector<int64_t>{0, 2, 1, 3};
}

/// The [batch, length, heads * dim] that `value`, [batch, heads, length, dim], was split from, or null.
Value* joined(const Value* value) {
  const Node* transpose = producer(value, "Transpose");
  const Node* reshape = swaps_heads(transpose) ? producer(transpose->input(0), "Reshape") : nullptr;
  Value* whole = reshape ? reshape->input(0) : nullptr;
  if (!whole || !whole->shape || whole->shape->size() != 3) return nullptr;
  const ir::Shape &from = *whole->shape, &to = *value->shape;
  return from[0] == to[0] && from[1] == to[2] && from[2] == to[1] * to[3] ? whole : nullptr;
}

}  // namespace

Result<bool> join_heads(Graph& graph) {
  return rewrite(graph, [&](Node& reshape) -> Result<Value*> {
    if (!reshape.is("Reshape") || !reshape.output(0)->shape || reshape.output(0)->shape->size() != 3)
      return nullptr;
    Node* transpose = producer(reshape.input(0), "Transpose");
    Node* attention = swaps_heads(transpose) ? producer(transpose->input(0), "Attention") : nullptr;
    if (!attention || attention->inputs().size() > 4 || attention->output(1)) return nullptr;
    const Value* out = attention->output(0);
    std::vector<Value*> inputs;
    for (size_t i = 0; i < 3; ++i) {
      const Value* x = attention->input(i);
      if (!x->shape || x->shape->size() != 4 || !out->shape) return nullptr;
      Value* whole = joined(x);
      if (!whole) return nullptr;
      inputs.push_back(whole);
    }
    const auto q_heads = (*attention->input(0)->shape)[1].as_constant();
    const auto kv_heads = (*attention->input(1)->shape)[1].as_constant();
    const ir::Shape &from = *out->shape, &to = *reshape.output(0)->shape;
    if (!q_heads || !kv_heads || to[0] != from[0] || to[1] != from[2] || to[2] != from[1] * from[3])
      return nullptr;
    if (attention->input(3)) inputs.push_back(attention->input(3));
    Attributes attributes = attention->attributes;
    attributes["q_num_heads"] = *q_heads;
    attributes["kv_num_heads"] = *kv_heads;
    return add_typed(graph, "Attention", inputs, std::move(attributes));
  });
}

}  // namespace decant::passes
