#include "passes/match.h"
#include "passes/passes.h"

namespace decant::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::Value;

/// The numbers of indices [..., 1] as [...].
Result<Value*> without_last_axis(Graph& graph, Value* indices) {
  const auto last = static_cast<int64_t>(indices->shape->size()) - 1;
  if (Node* unsqueeze = producer(indices, "Unsqueeze")) {
    const auto axes = ints(unsqueeze->input(1));
    if (axes && axes->size() == 1 && ((*axes)[0] == -1 || (*axes)[0] == last)) return unsqueeze->input(0);
  }
  Value* axis = graph.add_constant(graph.unique_name("axis"),
                                   ir::Constant::from_tensor(ir::Tensor::vector(std::vector<int64_t>{last})));
  return add_typed(graph, "Squeeze", {indices, axis});
}

}  // namespace

Result<bool> gather_rows(Graph& graph) {
  return rewrite(graph, [&](Node& node) -> Result<Value*> {
    if (!node.is("GatherND") || node.int_attribute("batch_dims", 0) != 0) return nullptr;
    Value *data = node.input(0), *indices = node.input(1);
    if (!data->shape || data->shape->empty() || !indices->shape || indices->shape->empty() ||
        indices->shape->back() != ir::Dim(1))
      return nullptr;
    DECANT_ASSIGN(Value * rows, without_last_axis(graph, indices));
    return add_typed(graph, "Gather", {data, rows}, {{"axis", int64_t{0}}});
  });
}

}  // namespace decant::passes
