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

/// Whether the value is the vector 0, 1, ..., count-1.
bool counting(Value* value, const ir::Dim& count) {
  if (count == ir::Dim(1) && value->constant && value->constant->elements() == 1) {
    const auto only = scalar(value);
    return only && *only == 0.0;
  }
  Node* range = producer(value, "Range");
  if (!range || !value->shape || value->shape->size() != 1 || (*value->shape)[0] != count) return false;
  const auto start = ints(range->input(0)), step = ints(range->input(2));
  return start && step && (*start)[0] == 0 && (*step)[0] == 1;
}

bool permutes(const Node* node, const std::vector<int64_t>& perm) {
  const auto* own = node ? node->attribute<std::vector<int64_t>>("perm") : nullptr;
  return own && *own == perm;
}

/// Transpose(ScatterND(Transpose(past, positions first), start + 0, 1, ..., update), back): the
/// TensorScatter.
Result<Value*> from_scatter_nd(Graph& graph, Node& back) {
  Node* scatter =
      back.is("Transpose") && permutes(&back, {1, 2, 0, 3}) ? producer(back.input(0), "ScatterND") : nullptr;
  if (!scatter || scatter->string_attribute("reduction", "none") != "none") return nullptr;
  Node* forth = producer(scatter->input(0), "Transpose");
  Value *index = scatter->input(1), *update = scatter->input(2);
  if (!forth || !permutes(forth, {2, 0, 1, 3}) || !update->shape || update->shape->size() != kRank ||
      !index->shape || index->shape->size() != 2 || !is_one((*index->shape)[1]))
    return nullptr;
  Value* past = forth->input(0);
  if (!past->shape || past->shape->size() != kRank) return nullptr;
  const ir::Shape &p = *past->shape, &u = *update->shape;
  if (u[0] != (*index->shape)[0] || u[1] != p[0] || u[2] != p[1] || u[3] != p[3]) return nullptr;
  Node* column = index->producer;
  if (!column || (!column->is("Unsqueeze") && !column->is("Reshape"))) return nullptr;
  Node* add = producer(column->input(0), "Add");
  if (!add || !add->output(0)->shape || add->output(0)->shape->size() != 1) return nullptr;
  for (size_t side = 0; side < 2; ++side) {
    Value* start = add->input(1 - side);
    if (!counting(add->input(side), u[0]) || start->dtype != DType::kInt64 || !start->shape ||
        ir::element_count(*start->shape) != ir::Dim(1))
      continue;
    const int64_t flat[] = {-1};
    Value* flat_shape = graph.add_constant(graph.unique_name("flat_shape"),
                                           ir::Constant::from_tensor(ir::Tensor::vector(flat)));
    DECANT_ASSIGN(Value * one, add_typed(graph, "Reshape", {start, flat_shape}));
    DECANT_ASSIGN(Value * rows,
                  add_typed(graph, "Shape", {past}, {{"start", int64_t{0}}, {"end", int64_t{1}}}));
    DECANT_ASSIGN(Value * write, add_typed(graph, "Expand", {one, rows}));
    DECANT_ASSIGN(Value * fresh,
                  add_typed(graph, "Transpose", {update}, {{"perm", std::vector<int64_t>{1, 2, 0, 3}}}));
    return add_typed(graph, "TensorScatter", {past, fresh, write},
                     {{"axis", int64_t{2}}, {"mode", std::string("linear")}});
  }
  return nullptr;
}

/// Whether the value is the index along `axis` at every place of `shape`, spread over the other axes.
bool is_own_index(Value* value, size_t axis, const ir::Shape& shape) {
  if (Node* expand = producer(value, "Expand")) value = expand->input(0);
  if (!value->shape || value->shape->size() > shape.size()) return false;
  const size_t missing = shape.size() - value->shape->size();
  if (missing > axis) return false;
  for (size_t i = 0; i < value->shape->size(); ++i) {
    if ((*value->shape)[i] != (i + missing == axis ? shape[axis] : ir::Dim(1))) return false;
  }
  while (value->producer && (value->producer->is("Reshape") || value->producer->is("Unsqueeze")))
    value = value->producer->input(0);
  return counting(value, shape[axis]);
}

/// The updates of a ScatterND whose indices name every element of data in order.
Value* written_whole(Node& scatter) {
  if (!scatter.is("ScatterND") || scatter.string_attribute("reduction", "none") != "none") return nullptr;
  Value *data = scatter.input(0), *update = scatter.input(2);
  Node* grid = producer(scatter.input(1), "Concat");
  if (!data->shape || !update->shape || *data->shape != *update->shape || data->dtype != update->dtype ||
      !grid || !grid->output(0)->shape)
    return nullptr;
  const ir::Shape& shape = *data->shape;
  const int64_t axis = grid->int_attribute("axis", 0);
  if (grid->inputs().size() != shape.size() || grid->output(0)->shape->size() != shape.size() + 1 ||
      (axis != -1 && axis != static_cast<int64_t>(shape.size())))
    return nullptr;
  for (size_t d = 0; d < shape.size(); ++d) {
    if ((*grid->output(0)->shape)[d] != shape[d]) return nullptr;
    Node* column = producer(grid->input(d), "Unsqueeze");
    const auto axes = column ? ints(column->input(1)) : std::nullopt;
    if (!axes || axes->size() != 1 ||
        ((*axes)[0] != -1 && (*axes)[0] != static_cast<int64_t>(shape.size())) ||
        !is_own_index(column->input(0), d, shape))
      return nullptr;
  }
  return update;
}

}  // namespace

Result<bool> lift_tensor_scatter(Graph& graph) {
  return rewrite(graph, [&](Node& node) -> Result<Value*> {
    if (Value* update = graph.is_output(node.output(0)) ? nullptr : written_whole(node)) return update;
    if (node.is("Transpose")) return from_scatter_nd(graph, node);
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
