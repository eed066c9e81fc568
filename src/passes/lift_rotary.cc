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
  if (!node || !node->input(0) || !node->input(0)->shape || node->input(0)->shape->empty())
    return std::nullopt;
  Value* x = node->input(0);
  const auto rank = static_cast<int64_t>(x->shape->size());
  const auto width = x->shape->back().as_constant();
  if (!width || *width % 2 != 0) return std::nullopt;
  if (node->is("Split")) {
    const int64_t axis = node->int_attribute("axis", 0);
    const auto part = value->shape ? value->shape->back().as_constant() : std::nullopt;
    if ((axis != -1 && axis != rank - 1) || node->outputs().size() != 2 || !part || *part * 2 != *width)
      return std::nullopt;
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
    if (node->is("Concat") && node->inputs().size() == 2 && node->input(0) == node->input(1))
      return node->input(0);
    if (node->is("Cos") || node->is("Sin") || node->is("Cast")) {
      DECANT_ASSIGN(Value * x, build(node->input(0), depth + 1));
      if (!x) return nullptr;
      return add_typed(graph_, node->op(), {x}, node->attributes);
    }
    if (node->is("Mul")) {
      const auto side = scalar_side(node);
      if (!side) return nullptr;
      DECANT_ASSIGN(Value * x, build(side->rest, depth + 1));
      if (!x) return nullptr;
      return add_typed(graph_, "Mul", {x, other_input(node, side->rest)});
    }
    return nullptr;
  }

  Graph& graph_;
  std::unordered_map<Value*, Value*> done_;
};

/// The parts of one Split along the last axis of a rank-4 x, whose first two are equally wide; else null.
Node* split_in_halves(Value* first) {
  Node* split = producer(first, "Split");
  if (!split || first != split->output(0) || split->outputs().size() < 2 || split->outputs().size() > 3)
    return nullptr;
  const Value *x = split->input(0), *second = split->output(1);
  const int64_t axis = split->int_attribute("axis", 0);
  if (!x->shape || x->shape->size() != 4 || (axis != -1 && axis != 3) || !first->shape || !second ||
      !second->shape)
    return nullptr;
  return first->shape->back() == second->shape->back() && first->shape->back().is_constant() ? split
                                                                                             : nullptr;
}

struct Products {
  Value *a, *c, *b, *s;  ///< a·c and b·s
};

/// x·c ∓ y·s of the node, with x and y given.
std::optional<Products> products(Node* node, Value* x, Value* y) {
  Node *left = producer(node->input(0), "Mul"), *right = producer(node->input(1), "Mul");
  if (!left || !right) return std::nullopt;
  Value *c = other_input(left, x), *s = other_input(right, y);
  if (!c || !s) return std::nullopt;
  return Products{x, c, y, s};
}

/// [batch, position, r/2] of the table [batch, 1, position, r/2].
Value* squeezed(Value* table) {
  Node* unsqueeze = producer(table, "Unsqueeze");
  const auto axes = unsqueeze ? ints(unsqueeze->input(1)) : std::nullopt;
  if (!axes || axes->size() != 1 || (*axes)[0] != 1) return nullptr;
  Value* result = unsqueeze->input(0);
  return result->shape && result->shape->size() == 3 ? result : nullptr;
}

/// concat(a·c - b·s, b·c + a·s[, rest]) of split(x): the RotaryEmbedding of x, or null.
Result<Value*> from_split(Graph& graph, Node& concat) {
  if (concat.inputs().size() < 2 || concat.inputs().size() > 3) return nullptr;
  Node *minus = producer(concat.input(0), "Sub"), *plus = producer(concat.input(1), "Add");
  Node* first = minus ? producer(minus->input(0), "Mul") : nullptr;
  if (!first || !plus) return nullptr;
  Node* split = split_in_halves(first->input(0));
  if (!split) split = split_in_halves(first->input(1));
  if (!split || split->outputs().size() != concat.inputs().size()) return nullptr;
  if (split->outputs().size() == 3 && concat.input(2) != split->output(2)) return nullptr;
  Value *a = split->output(0), *b = split->output(1);
  const auto lower = products(minus, a, b), upper = products(plus, b, a);
  if (!lower || !upper || lower->c != upper->c || lower->s != upper->s) return nullptr;
  Value *cos = squeezed(lower->c), *sin = squeezed(lower->s);
  if (!cos || !sin || cos->dtype != a->dtype) return nullptr;
  Attributes attributes;
  if (split->outputs().size() == 3) attributes["rotary_embedding_dim"] = a->shape->back().constant() * 2;
  return add_typed(graph, "RotaryEmbedding", {split->input(0), cos, sin}, std::move(attributes));
}

/// x · cos + rotate_half(x) · sin: the RotaryEmbedding of x, or null.
Result<Value*> from_rotate_half(Graph& graph, Tables& tables, Node& add) {
  for (size_t side = 0; side < 2; ++side) {
    Node *plain = producer(add.input(side), "Mul"), *turned = producer(add.input(1 - side), "Mul");
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
    return add_typed(graph, "RotaryEmbedding", {x, half_cos, half_sin});
  }
  return nullptr;
}

}  // namespace

Result<bool> lift_rotary(Graph& graph) {
  Tables tables(graph);
  return rewrite(graph, [&](Node& node) -> Result<Value*> {
    if (node.is("Concat")) return from_split(graph, node);
    return node.is("Add") ? from_rotate_half(graph, tables, node) : Result<Value*>(nullptr);
  });
}

}  // namespace decant::passes
