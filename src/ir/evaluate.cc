#include <new>
#include <unordered_map>

#include "ir/custom_op.h"
#include "ir/op.h"

namespace decant::ir {
namespace {

using Environment = std::unordered_map<const Value*, Tensor>;

Result<std::vector<Tensor>> run_scope(const Graph& graph, Environment& env, int depth);

Result<Tensor> fetch(const Value* v, const Environment& env, const Node& node) {
  if (auto it = env.find(v); it != env.end()) return it->second;
  if (v->constant) return v->constant->materialize();
  return internal_error(node.describe() + ": input '" + v->name + "' has no value");
}

Result<std::vector<Tensor>> run_if(const Node& node, Environment& env, int depth) {
  DECANT_ASSIGN(const Tensor condition, fetch(node.input(0), env, node));
  if (condition.elements() != 1)
    return invalid_model(node.describe() + ": the condition has more than one element");
  const auto* branch =
      node.attribute<std::shared_ptr<Graph>>(condition.int_at(0) ? "then_branch" : "else_branch");
  if (!branch || !*branch) return invalid_model(node.describe() + ": a branch is missing");
  return run_scope(**branch, env, depth + 1);
}

Result<std::vector<Tensor>> run_node(const Node& node, Environment& env, int depth) {
  if (node.is("If")) return run_if(node, env, depth);
  std::vector<Tensor> held;
  held.reserve(node.inputs().size());
  std::vector<const Tensor*> inputs;
  for (const Value* v : node.inputs()) {
    if (!v) {
      inputs.push_back(nullptr);
      continue;
    }
    DECANT_ASSIGN(Tensor t, fetch(v, env, node));
    held.push_back(std::move(t));
    inputs.push_back(&held.back());
  }
  return evaluate_node(node, inputs);
}

Result<std::vector<Tensor>> run_scope(const Graph& graph, Environment& env, int depth) {
  if (depth > 64) return invalid_model("graph '" + graph.name + "': sub-graphs nested over 64 deep");
  for (const auto& node : graph.nodes()) {
    DECANT_ASSIGN(std::vector<Tensor> outputs, run_node(*node, env, depth));
    for (size_t i = 0; i < node->outputs().size() && i < outputs.size(); ++i) {
      if (node->outputs()[i]) env[node->outputs()[i]] = std::move(outputs[i]);
    }
  }
  std::vector<Tensor> results;
  for (const Value* v : graph.outputs()) {
    if (auto it = env.find(v); it != env.end()) {
      results.push_back(it->second);
    } else if (v->constant) {
      DECANT_ASSIGN(Tensor t, v->constant->materialize());
      results.push_back(std::move(t));
    } else {
      return internal_error("output '" + v->name + "' was not computed");
    }
  }
  return results;
}

}  // namespace

Result<std::vector<Tensor>> evaluate_node(const Node& node, std::span<const Tensor* const> inputs) {
  if (node.custom) return node.custom->eval(node, inputs);
  const OpDef* op = find_op(node.domain(), node.op());
  if (!op || !op->eval) return unsupported(node.describe() + ": no reference kernel");
  bool complete = inputs.size() >= static_cast<size_t>(op->min_inputs);
  for (size_t i = 0; complete && i < static_cast<size_t>(op->min_inputs); ++i)
    complete = inputs[i] != nullptr;
  if (!complete) return invalid_model(node.describe() + ": a required input is left out");
  try {
    auto outputs = op->eval(node, inputs);
    if (outputs.ok() || outputs.status().message().starts_with(node.describe())) return outputs;
    return std::move(outputs).status().with_context(node.describe());
  } catch (const std::bad_alloc&) {
    return resource_error(node.describe() + ": no memory");
  }
}

Result<std::vector<Tensor>> evaluate_graph(const Graph& graph, std::span<const Tensor> inputs) {
  if (inputs.size() != graph.inputs().size()) {
    return invalid_argument("the graph has " + std::to_string(graph.inputs().size()) + " inputs, " +
                            std::to_string(inputs.size()) + " were given");
  }
  Environment env;
  for (size_t i = 0; i < inputs.size(); ++i) env[graph.inputs()[i]] = inputs[i];
  return run_scope(graph, env, 0);
}

}  // namespace decant::ir
