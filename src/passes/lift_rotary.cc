#include <unordered_map>

#include "passes/match.h"
#include "passes/passes.h"

namespace decant::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::Value;

/// One half of x along the last axis: which half, and x.
struct Half {
  Value* x;
  bool upper;
};

std::optional<Half> half_of(Value* value) {
  Node* node = value ? value->producer : nullptr;
  if (!node || !node->input(0) || !node->input(0)->shape || node->input(0)->shape->empty()) return std::nullopt;
  Value* x = node->input(0);
  const auto rank = static_cast<int64_t>(x->shape->size());
  const auto width = x->shape->back().as_constant();
  if (!width || *width % 2 != 0) return std::nullopt;
  if (node->is("Split")) {
    const int64_t axis = node->int_attribute("axis", 0);
    const auto part = value->shape ? value->shape->back().as_constant() : std::nullopt;
    if ((axis != -1 && axis != rank - 1) || node->outputs().size() != 2 || !part || *part * 2 != *width) return std::nullopt;
    return Half{x, value == node->output(1)};
  }
  if (!node->is("Slice")) return std::nullopt;
  const auto starts = ints(node->input(1)), ends = ints(node->input(2)), axes = ints(node->input(3));
  const auto steps = node->input(4) ? ints(node->input(4)) : std::optional(std::vector<int64_t>{1});
  if (!starts || !ends || !axes || !steps || starts->size() != 1 || (*steps)[0] != 1) return std::nullopt;
  if ((*axes)[0] != -1 && (*axes)[0] != rank - 1) return std::nullopt;
  int64_t begin = (*starts)[0], end = (*ends)[0];
  if (begin < 0) begin += *width;
  if (end < 0) end += *width;
  if (begin == 0 && end == *width / 2) return Half{x, false};
  if (begin == *width / 2 && end >= *width) return Half{x, true};
  return std::nullopt;
}

/// The x of concat(-upper(x), lower(x)).
Value* rotated(Value* value) {
  Node* concat = producer(value, "Concat");
  if (!concat || concat->inputs().size() != 2) return nullptr;
  Node* negated = producer(concat->input(0), "Neg");
  if (!negated) return nullptr;
  const Half upper = half_of(negated->input(0)).value_or(Half{nullptr, false});
  const Half lower = half_of(concat->input(1)).value_or(Half{nullptr, true});
  return upper.upper && !lower.upper && upper.x == lower.x ? upper.x : nullptr;
}

/// Rewrites a table whose two halves along the last axis are equal into its first half.
class Tables {
 public:
  explicit Tables(Graph& graph) : graph_(graph) {}

  /// [batch, position, D/2] of a table [batch, 1, position, D]; null when the halves are not provably equal.
  Result<Value*> half(Value* table) {
    if (auto it = done_.find(table); it != done_.end()) return it->second;
    DECANT_ASSIGN(Value * result, build(table, 0));
    done_[table] = result;
    return result;
  }

 private:
  Result<Value*> build(Value* value, int depth) {
    Node* node = value->producer;
    if (!node || depth > 16) return nullptr;
    if (node->is("Unsqueeze")) {
      const auto axes = ints(node->input(1));
      if (!axes || axes->size() != 1 || (*axes)[0] != 1) return nullptr;
      return build(node->input(0), depth + 1);
    }
    if (node->is("Concat") && node->inputs().size() == 2 && node->input(0) == node->input(1)) return node->input(0);
    if (node->is("Cos") || node->is("Sin") || node->is("Cast")) {
      DECANT_ASSIGN(Value * x, build(node->input(0), depth + 1));
      if (!x) return nullptr;
      DECANT_ASSIGN(Node * copy, add_typed(graph_, node->op(), {x}, node->attributes));
      return copy->output(0);
    }
    if (node->is("Mul")) {
      const auto side = scalar_side(node);
      if (!side) return nullptr;
      DECANT_ASSIGN(Value * x, build(side->rest, depth + 1));
      if (!x) return nullptr;
      DECANT_ASSIGN(Node * copy, add_typed(graph_, "Mul", {x, other_input(node, side->rest)}));
      return copy->output(0);
    }
    return nullptr;
  }

  Graph& graph_;
  std::unordered_map<Value*, Value*> done_;
};

}  // namespace

Result<bool> lift_rotary(Graph& graph) {
  bool changed = false;
  Tables tables(graph);
  const size_t count = graph.nodes().size();
  for (size_t i = 0; i < count; ++i) {
    Node* add = graph.nodes()[i].get();
    if (!add || !add->is("Add")) continue;
    for (size_t side = 0; side < 2; ++side) {
      Node *plain = producer(add->input(side), "Mul"), *turned = producer(add->input(1 - side), "Mul");
      if (!plain || !turned) continue;
      Value *x = nullptr, *sin = nullptr;
      for (size_t s = 0; s < 2 && !x; ++s) {
        x = rotated(turned->input(s));
        sin = turned->input(1 - s);
      }
      Value* cos = x ? other_input(plain, x) : nullptr;
      if (!cos || !x->shape || x->shape->size() != 4 || !cos->shape || cos->shape->size() != 4) continue;
      DECANT_ASSIGN(Value * half_cos, tables.half(cos));
      DECANT_ASSIGN(Value * half_sin, tables.half(sin));
      if (!half_cos || !half_sin || !half_cos->shape || half_cos->shape->size() != 3) continue;
      DECANT_ASSIGN(Node * rotary, add_typed(graph, "RotaryEmbedding", {x, half_cos, half_sin}));
      replace(graph, add->output(0), rotary->output(0));
      changed = true;
      break;
    }
  }
  if (changed) {
    graph.remove_dead();
    DECANT_RETURN_IF_ERROR(graph.sort());
  }
  return changed;
}

}  // namespace decant::passes
