#include "passes/match.h"
#include "passes/passes.h"

namespace decant::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::Value;

/// Output `index` of the Split into single rows whose squeezed result `value` is; else null.
Node* row_of_split(Value* value, size_t index) {
  Node* squeeze = producer(value, "Squeeze");
  const auto axes = squeeze ? ints(squeeze->input(1)) : std::nullopt;
  Node* split = axes && *axes == std::vector<int64_t>{0} ? producer(squeeze->input(0), "Split") : nullptr;
  if (!split || split->int_attribute("axis", 0) != 0 || index >= split->outputs().size() ||
      split->output(index) != squeeze->input(0))
    return nullptr;
  const auto& shape = split->input(0)->shape;
  const auto rows = static_cast<int64_t>(split->outputs().size());
  if (!shape || shape->empty() || (*shape)[0] != ir::Dim(rows)) return nullptr;
  if (const Value* sizes = split->input(1)) {
    const auto each = ints(sizes);
    if (!each || *each != std::vector<int64_t>(static_cast<size_t>(rows), 1)) return nullptr;
  }
  return split;
}

Value* skip_casts(Value* value) {
  while (Node* cast = producer(value, "Cast")) value = cast->input(0);
  return value;
}

/// Whether `ends` is the running sum of how often each number occurs among `rows` numbers: it does not fall
/// and ends with `rows`.
bool counts_up_to(Value* ends, const ir::Dim& rows) {
  Node* sum = producer(skip_casts(ends), "CumSum");
  const auto axis = sum ? ints(sum->input(1)) : std::nullopt;
  if (!axis || *axis != std::vector<int64_t>{0} || sum->int_attribute("exclusive", 0) != 0 ||
      sum->int_attribute("reverse", 0) != 0)
    return false;
  Node* scatter = producer(skip_casts(sum->input(0)), "ScatterElements");
  if (!scatter || scatter->string_attribute("reduction", "none") != "add" ||
      scatter->int_attribute("axis", 0) != 0)
    return false;
  const auto& numbers = scatter->input(1)->shape;
  if (!numbers || numbers->size() != 1 || (*numbers)[0] != rows) return false;
  Value* ones = scatter->input(2);
  if (Node* expand = producer(ones, "Expand")) ones = expand->input(0);
  if (const auto one = scalar(ones); !one || *one != 1.0) return false;
  const ir::ConstantPtr& zeros = scatter->input(0)->constant;
  if (!zeros || zeros->dims().size() != 1 || zeros->elements() > (int64_t{1} << 20)) return false;
  const auto start = zeros->materialize();
  if (!start.ok()) return false;
  for (int64_t i = 0; i < start->elements(); ++i) {
    if (start->double_at(i) != 0.0) return false;
  }
  return true;
}

/// The product of all groups when `concat` joins x[begin_g : end_g] · w[g] of every group g, in order.
Result<Value*> lift(Graph& graph, Node& concat) {
  if (!concat.is("Concat") || concat.inputs().size() < 2 || !concat.output(0)->shape ||
      concat.output(0)->shape->size() != 2)
    return nullptr;
  const int64_t axis = concat.int_attribute("axis", 0);
  if (axis != 0 && axis != -2) return nullptr;
  Value* x = nullptr;
  Node *weights = nullptr, *ends = nullptr;
  Value* begin = nullptr;
  for (size_t g = 0; g < concat.inputs().size(); ++g) {
    Node* product = producer(concat.input(g), "MatMul");
    Node* gather = product ? producer(product->input(0), "Gather") : nullptr;
    Node* range = gather ? producer(gather->input(1), "Range") : nullptr;
    if (!range || gather->int_attribute("axis", 0) != 0) return nullptr;
    const auto step = scalar(range->input(2));
    if (!step || *step != 1.0) return nullptr;
    if (g == 0) {
      const auto zero = scalar(range->input(0));
      if (!zero || *zero != 0.0) return nullptr;
    } else if (range->input(0) != begin) {
      return nullptr;
    }
    begin = range->input(1);
    Node* matrix = row_of_split(product->input(1), g);
    Node* end = row_of_split(begin, g);
    if (!matrix || !end || (g > 0 && (matrix != weights || end != ends || gather->input(0) != x)))
      return nullptr;
    x = gather->input(0);
    weights = matrix;
    ends = end;
  }
  const size_t groups = concat.inputs().size();
  if (weights->outputs().size() != groups || ends->outputs().size() != groups) return nullptr;
  if (!x->shape || x->shape->size() != 2 || !counts_up_to(ends->input(0), (*x->shape)[0])) return nullptr;
  Value* stack = weights->input(0);
  if (!stack->shape || stack->shape->size() != 3 || stack->dtype != x->dtype) return nullptr;
  Attributes attributes;
  if (Node* transpose = producer(stack, "Transpose")) {
    const auto* perm = transpose->attribute<std::vector<int64_t>>("perm");
    if (perm && *perm == std::vector<int64_t>{0, 2, 1}) {
      stack = transpose->input(0);
      attributes["transB"] = int64_t{1};
    }
  }
  return add_typed(graph, "GroupedMatMul", {x, stack, ends->input(0)}, std::move(attributes), "decant");
}

}  // namespace

Result<bool> lift_grouped_matmul(Graph& graph) {
  bool lifted = false;
  return rewrite(graph, [&](Node& node) -> Result<Value*> {
    // How many rows come next to each other is known behind a lifted product only, and the next one needs it.
    if (lifted) DECANT_RETURN_IF_ERROR(ir::infer_node(graph, node));
    DECANT_ASSIGN(Value * value, lift(graph, node));
    lifted = lifted || value;
    return value;
  });
}

}  // namespace decant::passes
