#include <set>

#include "passes/match.h"
#include "passes/passes.h"

namespace decant::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::Value;

std::string list_inputs(const Graph& graph) {
  std::string names;
  for (const Value* v : graph.inputs()) names += (names.empty() ? "'" : ", '") + v->name + "'";
  return names.empty() ? "none" : names;
}

}  // namespace

Status bind_input(Graph& graph, std::string_view name, const ir::Tensor& value) {
  for (Value* input : graph.inputs()) {
    if (input->name != name) continue;
    bool fits = input->dtype == value.dtype() && (!input->shape || input->shape->size() == value.rank());
    for (size_t i = 0; fits && input->shape && i < value.rank(); ++i) {
      const auto dim = (*input->shape)[i].as_constant();
      fits = !dim || *dim == value.dims()[i];
    }
    if (!fits) {
      return invalid_argument("input '" + input->name + "' is " + std::string(to_string(input->dtype)) +
                              (input->shape ? ir::to_string(*input->shape) : "[...]") +
                              ", the value bound to it is " + ir::describe(value));
    }
    for (const ir::State& s : graph.states) {
      if (s.input == input)
        return invalid_argument("input '" + input->name + "' is a state: it cannot be bound");
    }
    Value* constant =
        graph.add_constant(graph.unique_name(input->name + "_bound"), ir::Constant::from_tensor(value));
    const bool is_output = graph.is_output(input);
    if (is_output) {  // an input handed through: the output keeps a node, which keeps the name
      Node* copy = graph.add_node("Identity", {constant});
      replace(graph, input, copy->output(0));
    } else {
      graph.replace_all_uses(input, constant);
    }
    graph.remove_input(input);
    graph.remove_dead();
    DECANT_RETURN_IF_ERROR(graph.sort());
    return ir::infer_types(graph);
  }
  return invalid_argument("there is no input '" + std::string(name) + "'; the inputs are " +
                          list_inputs(graph));
}

Result<bool> drop_unused_inputs(Graph& graph) {
  std::set<Value*> kept(graph.outputs().begin(), graph.outputs().end());
  for (const ir::State& s : graph.states) kept.insert(s.input);
  const std::vector<Value*> inputs = graph.inputs();
  bool changed = false;
  for (Value* input : inputs) {
    if (!input->users().empty() || kept.count(input)) continue;
    graph.remove_input(input);
    changed = true;
  }
  if (changed) graph.remove_dead();
  return changed;
}

}  // namespace decant::passes
