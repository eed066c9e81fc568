#include "passes/match.h"
#include "passes/passes.h"

namespace decant::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::Value;

constexpr size_t kRank = 4, kPositions = 2;

bool is_one(const ir::Dim& d) { return d == ir::Dim(1); }

/// Whether the value is 0, 1, ..., count-1 along the position axis, as [1, 1, count, 1].
bool counts_positions(const Value* value, const ir::Dim& count) {
  if (!value->shape || value->shape->size() != kRank || !value->producer) return false;
  for (size_t i = 0; i < kRank; ++i) {
    if (i == kPositions ? (*value->shape)[i] != count : !is_one((*value->shape)[i])) return false;
  }
  const Node* reshape = value->producer;
  if (!reshape->is("Reshape") && !reshape->is("Unsqueeze")) return false;
  const Node* range = producer(reshape->input(0), "Range");
  if (!range) return false;
  const auto start = ints(range->input(0)), step = ints(range->input(2));
  return start && step && (*start)[0] == 0 && (*step)[0] == 1;
}

/// [batch] of a value [batch or 1, 1, 1, 1].
Result<Value*> per_row(Graph& graph, Value* value, Value* update) {
  if (!value->shape || value->shape->size() != kRank || value->dtype != DType::kInt64) return nullptr;
  for (size_t i = 1; i < kRank; ++i) {
    if (!is_one((*value->shape)[i])) return nullptr;
  }
  const ir::Dim& batch = (*update->shape)[0];
  if (Node* reshape = producer(value, "Reshape")) {
    Value* source = reshape->input(0);
    if (source->shape && source->shape->size() == 1 && (*source->shape)[0] == batch) return source;
  }
  const int64_t flat[] = {-1};
  Value* flat_shape = graph.add_constant(graph.unique_name("flat_shape"),
                                         ir::Constant::from_tensor(ir::Tensor::vector(flat)));
  DECANT_ASSIGN(Value * flat_value, add_typed(graph, "Reshape", {value, flat_shape}));
  if ((*value->shape)[0] == batch) return flat_value;
  DECANT_ASSIGN(Value * rows,
                add_typed(graph, "Shape", {update}, {{"start", int64_t{0}}, {"end", int64_t{1}}}));
  return add_typed(graph, "Expand", {flat_value, rows});
}

/// Whether the scatter writes whole [channels] rows for all batches and heads.
bool covers_rows(const Node& scatter) {
  const Value *past = scatter.input(0), *index = scatter.input(1), *update = scatter.input(2);
  if (!past->shape || !update->shape || !index->shape || past->shape->size() != kRank ||
      update->shape->size() != kRank || *index->shape != *update->shape) {
    return false;
  }
  for (size_t d = 0; d < kRank; ++d) {
    if (d != kPositions && (*past->shape)[d] != (*update->shape)[d]) return false;
  }
  return true;
}

}  // namespace

Result<bool> lift_tensor_scatter(Graph& graph) {
  return rewrite(graph, [&](Node& node) -> Result<Value*> {
    if (!node.is("ScatterElements") || node.string_attribute("reduction", "none") != "none") return nullptr;
    const int64_t axis = node.int_attribute("axis", 0);
    if ((axis != 2 && axis != -2) || !covers_rows(node)) return nullptr;
    Value *past = node.input(0), *update = node.input(2);
    Node* expand = producer(node.input(1), "Expand");
    Node* add = expand ? producer(expand->input(0), "Add") : nullptr;
    for (size_t side = 0; add && side < 2; ++side) {
      if (!counts_positions(add->input(side), (*update->shape)[kPositions])) continue;
      DECANT_ASSIGN(Value * write, per_row(graph, add->input(1 - side), update));
      if (!write) continue;
      return add_typed(graph, "TensorScatter", {past, update, write},
                       {{"axis", int64_t{2}}, {"mode", std::string("linear")}});
    }
    return nullptr;
  });
}

}  // namespace decant::passes
