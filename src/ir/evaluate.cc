#include <new>
#include <unordered_map>

#include "ir/control_flow.h"
#include "ir/custom_op.h"
#include "ir/op.h"

namespace decant::ir {
namespace {

/// The interpreter: values of all scopes, by the value they belong to.
class Interpreter {
 public:
  explicit Interpreter(const RunOptions& options) : options_(options) {}

  void set(const Value* value, Datum datum) { values_[value] = std::move(datum); }

  Result<std::vector<Datum>> run_scope(const Graph& graph, int depth) {
    if (depth > 64) return invalid_model("graph '" + graph.name + "': sub-graphs nested over 64 deep");
    for (const auto& node : graph.nodes()) {
      if (!node) continue;
      if (Status s = options_.check(); !s.ok()) return std::move(s).with_context(node->describe());
      DECANT_ASSIGN(std::vector<Datum> outputs, run_node(*node, depth));
      for (size_t i = 0; i < node->outputs().size() && i < outputs.size(); ++i) {
        if (node->outputs()[i]) values_[node->outputs()[i]] = std::move(outputs[i]);
      }
    }
    std::vector<Datum> results;
    for (const Value* v : graph.outputs()) {
      auto datum = fetch(v);
      if (!datum.ok()) return std::move(datum).status().with_context("graph '" + graph.name + "'");
      results.push_back(*std::move(datum));
    }
    return results;
  }

 private:
  Result<Datum> fetch(const Value* v) const {
    if (auto it = values_.find(v); it != values_.end()) return it->second;
    if (v->constant) {
      DECANT_ASSIGN(Tensor t, v->constant->materialize());
      return Datum(std::move(t));
    }
    return internal_error("'" + v->name + "' has no value");
  }

  Result<std::vector<Datum>> run_node(const Node& node, int depth) {
    std::vector<Datum> held;
    held.reserve(node.inputs().size());
    std::vector<const Datum*> inputs;
    for (const Value* v : node.inputs()) {
      if (!v) {
        inputs.push_back(nullptr);
        continue;
      }
      auto datum = fetch(v);
      if (!datum.ok()) return std::move(datum).status().with_context(node.describe());
      held.push_back(*std::move(datum));
      inputs.push_back(&held.back());
    }
    if (!is_control_flow(node)) return evaluate_node_data(node, inputs);
    if (node.is("If")) {
      if (inputs.empty() || !inputs[0]) return invalid_model(node.describe() + ": the condition is left out");
      DECANT_ASSIGN(const Graph* branch, choose_branch(node, *inputs[0]));
      return run_scope(*branch, depth + 1);
    }
    const RunBody body = [&](std::span<const Datum> arguments) {
      const Graph& graph = *subgraph(node, "body");
      for (size_t i = 0; i < arguments.size() && i < graph.inputs().size(); ++i)
        values_[graph.inputs()[i]] = arguments[i];
      return run_scope(graph, depth + 1);
    };
    if (node.is("Loop")) return run_loop(node, inputs, body, options_);
    if (node.is("Scan")) return run_scan(node, inputs, body, options_);
    return run_sequence_map(node, inputs, body, options_);
  }

  const RunOptions& options_;
  std::unordered_map<const Value*, Datum> values_;
};

/// Runs a kernel, with the node in front of its errors.
template <typename T, typename Eval>
Result<std::vector<T>> run_kernel(const Node& node, const OpDef& op, Eval eval,
                                  std::span<const T* const> inputs) {
  bool complete = inputs.size() >= static_cast<size_t>(op.min_inputs);
  for (size_t i = 0; complete && i < static_cast<size_t>(op.min_inputs); ++i) complete = inputs[i] != nullptr;
  if (!complete) return invalid_model(node.describe() + ": a required input is left out");
  try {
    auto outputs = eval(node, inputs);
    if (outputs.ok() || outputs.status().message().starts_with(node.describe())) return outputs;
    return std::move(outputs).status().with_context(node.describe());
  } catch (const std::bad_alloc&) {
    return resource_error(node.describe() + ": no memory");
  }
}

}  // namespace

Result<std::vector<Tensor>> evaluate_node(const Node& node, std::span<const Tensor* const> inputs) {
  if (node.custom) return node.custom->eval(node, inputs);
  const OpDef* op = find_op(node.domain(), node.op());
  if (!op || !op->eval) return unsupported(node.describe() + ": no reference kernel");
  return run_kernel<Tensor>(node, *op, op->eval, inputs);
}

Result<std::vector<Datum>> evaluate_node_data(const Node& node, std::span<const Datum* const> inputs) {
  const OpDef* op = node.custom ? nullptr : find_op(node.domain(), node.op());
  if (!node.custom && (!op || (!op->eval && !op->eval_data)))
    return unsupported(node.describe() + ": no reference kernel");
  std::vector<const Tensor*> tensors;
  bool all_tensors = true;
  for (const Datum* d : inputs) {
    all_tensors = all_tensors && (d == nullptr || d->is_tensor());
    tensors.push_back(d != nullptr && d->is_tensor() ? &d->tensor() : nullptr);
  }
  if (op && op->eval_data && !(op->eval && all_tensors)) {
    return run_kernel<Datum>(node, *op, op->eval_data, inputs);
  }
  if (!all_tensors) return invalid_model(node.describe() + ": takes tensors only");
  DECANT_ASSIGN(std::vector<Tensor> results, evaluate_node(node, tensors));
  return std::vector<Datum>(std::make_move_iterator(results.begin()), std::make_move_iterator(results.end()));
}

Result<std::vector<Datum>> evaluate_graph_data(const Graph& graph, std::span<const Datum> inputs,
                                               const RunOptions& options) {
  if (inputs.size() != graph.inputs().size()) {
    return invalid_argument("the graph has " + std::to_string(graph.inputs().size()) + " inputs, " +
                            std::to_string(inputs.size()) + " were given");
  }
  Interpreter interpreter(options);
  for (size_t i = 0; i < inputs.size(); ++i) interpreter.set(graph.inputs()[i], inputs[i]);
  return interpreter.run_scope(graph, 0);
}

Result<std::vector<Tensor>> evaluate_graph(const Graph& graph, std::span<const Tensor> inputs,
                                           const RunOptions& options) {
  const std::vector<Datum> data(inputs.begin(), inputs.end());
  DECANT_ASSIGN(std::vector<Datum> results, evaluate_graph_data(graph, data, options));
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].is_tensor()) {
      return unsupported("output '" + graph.outputs()[i]->name + "' is " + describe(results[i]));
    }
    tensors.push_back(results[i].tensor());
  }
  return tensors;
}

}  // namespace decant::ir
