#include "passes/match.h"

namespace decant::passes {

using ir::Graph;
using ir::Node;
using ir::Value;

std::optional<double> scalar(const Value* value) {
  if (!value || !value->constant || value->constant->elements() != 1) return std::nullopt;
  auto t = value->constant->materialize();
  if (!t.ok()) return std::nullopt;
  return t->double_at(0);
}

std::optional<std::vector<int64_t>> ints(const Value* value) {
  if (!value) return std::nullopt;
  if (value->elements) return ir::constant_shape(*value->elements);
  const ir::ConstantPtr& c = value->constant;
  if (!c || !is_integer(c->dtype()) || c->dims().size() > 1 || c->elements() > 64) return std::nullopt;
  auto t = c->materialize();
  if (!t.ok()) return std::nullopt;
  return t->to_ints();
}

Value* other_input(const Node* node, const Value* value) {
  if (node->input(0) == value) return node->input(1);
  return node->input(1) == value ? node->input(0) : nullptr;
}

std::optional<ScalarSide> scalar_side(const Node* node) {
  if (auto n = scalar(node->input(1))) return ScalarSide{*n, node->input(0)};
  if (auto n = scalar(node->input(0))) return ScalarSide{*n, node->input(1)};
  return std::nullopt;
}

Value* skip_float_casts(Value* value) {
  while (Node* cast = producer(value, "Cast")) {
    if (!is_float(cast->input(0)->dtype) || !is_float(value->dtype)) break;
    value = cast->input(0);
  }
  return value;
}

Result<Value*> add_typed(Graph& graph, std::string op, std::vector<Value*> inputs, Attributes attributes,
                         std::string domain) {
  Node* node = graph.add_node(std::move(op), std::move(inputs), 1, "", std::move(domain));
  node->attributes = std::move(attributes);
  DECANT_RETURN_IF_ERROR(ir::infer_node(graph, *node));
  return node->output(0);
}

void replace(Graph& graph, Value* from, Value* to) {
  if (graph.is_output(from) && !graph.is_output(to) && to->producer) {
    std::string name = std::move(from->name);
    from->name = graph.unique_name(name + "_replaced");
    to->name = std::move(name);
  }
  graph.replace_all_uses(from, to);
}

Result<bool> rewrite(Graph& graph, const std::function<Result<Value*>(Node& node)>& replacement) {
  bool changed = false;
  const size_t count = graph.nodes().size();
  for (size_t i = 0; i < count; ++i) {
    Node* node = graph.nodes()[i].get();
    if (!node || !node->output(0)) continue;
    DECANT_ASSIGN(Value * value, replacement(*node));
    if (!value) continue;
    replace(graph, node->output(0), value);
    changed = true;
  }
  if (changed) {
    graph.remove_dead();
    DECANT_RETURN_IF_ERROR(graph.sort());
  }
  return changed;
}

}  // namespace decant::passes
