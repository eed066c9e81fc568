#include <unordered_set>

#include "ir/graph.h"
#include "ir/op.h"

namespace decant::ir {
namespace {

Status validate_scope(const Graph& graph, std::unordered_set<const Value*>& defined, int depth) {
  if (depth > 64) return invalid_model("graph '" + graph.name + "': sub-graphs nested over 64 deep");
  std::unordered_set<std::string_view> names;
  for (const auto& v : graph.values()) {
    if (!names.insert(v->name).second) return invalid_model("value '" + v->name + "' is defined twice");
    if (v->constant) defined.insert(v.get());
  }
  for (const Value* v : graph.inputs()) defined.insert(v);
  for (const auto& node : graph.nodes()) {
    if (!node) continue;
    for (const Value* v : node->inputs()) {
      if (v && !defined.count(v))
        return invalid_model(node->describe() + " uses value '" + v->name + "' before its definition");
    }
    const OpDef* op = find_op(node->domain(), node->op());
    if (!op && !node->custom) return unsupported(node->describe() + ": unknown operator");
    const auto count = static_cast<int>(node->inputs().size());
    if (!node->custom && (count < op->min_inputs || (op->max_inputs >= 0 && count > op->max_inputs))) {
      return invalid_model(node->describe() + " has " + std::to_string(count) + " inputs");
    }
    for (const auto& [key, attribute] : node->attributes) {
      if (const auto* sub = std::get_if<std::shared_ptr<Graph>>(&attribute); sub && *sub) {
        DECANT_RETURN_IF_ERROR(validate_scope(**sub, defined, depth + 1).with_context(node->describe()));
      }
    }
    for (const Value* v : node->outputs()) {
      if (!v) continue;
      if (v->dtype == DType::kUndefined)
        return invalid_model(node->describe() + ": output '" + v->name + "' has no type");
      if (v->producer != node.get())
        return invalid_model(node->describe() + ": output '" + v->name + "' has another producer");
      defined.insert(v);
    }
  }
  for (const Value* v : graph.outputs()) {
    if (!defined.count(v)) return invalid_model("output '" + v->name + "' is never defined");
  }
  return ok_status();
}

}  // namespace

Status validate(const Graph& graph) {
  std::unordered_set<const Value*> defined;
  DECANT_RETURN_IF_ERROR(validate_scope(graph, defined, 0));
  for (const State& s : graph.states) {
    if (!s.input || !s.output) return invalid_model("a state lacks its input or its output");
    if (s.input->dtype != s.output->dtype) {
      return invalid_model("state '" + s.input->name + "' -> '" + s.output->name + "' changes its dtype");
    }
  }
  return ok_status();
}

}  // namespace decant::ir
