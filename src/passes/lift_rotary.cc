#include <cstring>
#include <map>

#include "passes/match.h"
#include "passes/passes.h"

namespace decant::passes {
namespace {

using ir::Dim;
using ir::Graph;
using ir::Node;
using ir::Value;

/// Cached tables above this size are left alone.
constexpr size_t kMaxTableBytes = size_t{256} << 20;

/// x[..., begin : end : step] along the last axis of known width.
struct Part {
  Value* x = nullptr;
  int64_t begin = 0, end = 0, step = 1;
  bool is(int64_t b, int64_t e) const { return x && step == 1 && begin == b && end == e; }
};

std::optional<int64_t> width_of(const Value* x) {
  return x && x->shape && !x->shape->empty() ? x->shape->back().as_constant() : std::nullopt;
}

Part part_of(Value* value) {
  Node* node = value ? value->producer : nullptr;
  Value* x = node ? node->input(0) : nullptr;
  const auto width = width_of(x), own = width_of(value);
  if (!width || !own) return {};
  const auto rank = static_cast<int64_t>(x->shape->size());
  if (node->is("Split")) {
    const int64_t axis = node->int_attribute("axis", 0);
    if (axis != -1 && axis != rank - 1) return {};
    int64_t begin = 0;
    for (Value* out : node->outputs()) {
      const auto n = width_of(out);
      if (!n) return {};
      if (out == value) return {x, begin, begin + *n, 1};
      begin += *n;
    }
    return {};
  }
  if (!node->is("Slice")) return {};
  const auto starts = ints(node->input(1)), ends = ints(node->input(2)), axes = ints(node->input(3));
  const auto steps = node->input(4) ? ints(node->input(4)) : std::optional(std::vector<int64_t>{1});
  if (!starts || !ends || !axes || !steps || starts->size() != 1 || ends->size() != 1 || axes->size() != 1 ||
      steps->size() != 1 || (*steps)[0] < 1)
    return {};
  if ((*axes)[0] != -1 && (*axes)[0] != rank - 1) return {};
  int64_t begin = (*starts)[0], end = (*ends)[0];
  if (begin < 0) begin += *width;
  if (end < 0) end += *width;
  end = std::min(end, *width);
  if (begin < 0 || begin >= end) return {};
  return {x, begin, end, (*steps)[0]};
}

/// The x that was turned by a quarter: concat(-upper, lower), or pairs (-x1, x0).
struct Turned {
  Value* x = nullptr;
  bool interleaved = false;
};

/// The x of Unsqueeze(x, last).
Value* unsqueezed_last(Value* value) {
  Node* node = producer(value, "Unsqueeze");
  const auto axes = node ? ints(node->input(1)) : std::nullopt;
  if (!axes || axes->size() != 1 || !value->shape) return nullptr;
  return (*axes)[0] == -1 || (*axes)[0] == static_cast<int64_t>(value->shape->size()) - 1 ? node->input(0)
                                                                                          : nullptr;
}

bool along_last_axis(const Node& concat) {
  const Value* y = concat.output(0);
  const int64_t axis = concat.int_attribute("axis", 0);
  return y->shape && (axis == -1 || axis == static_cast<int64_t>(y->shape->size()) - 1);
}

/// Concat of the two values, each with a new last axis, flattened: pairs (a, b) along the last axis.
bool pairs(Value* value, Value** a, Value** b) {
  Node* reshape = producer(value, "Reshape");
  if (!reshape) reshape = producer(value, "Flatten");
  Node* concat = reshape ? producer(reshape->input(0), "Concat") : nullptr;
  if (!concat || concat->inputs().size() != 2 || !along_last_axis(*concat) || !value->shape) return false;
  *a = unsqueezed_last(concat->input(0));
  *b = unsqueezed_last(concat->input(1));
  if (!*a || !*b || !(*a)->shape) return false;
  ir::Shape joined = *(*a)->shape;
  joined.back() = joined.back() * Dim(2);
  return *value->shape == joined;
}

Turned turned(Value* value) {
  if (Node* concat = producer(value, "Concat")) {
    if (concat->inputs().size() != 2 || !along_last_axis(*concat)) return {};
    Node* negated = producer(concat->input(0), "Neg");
    if (!negated) return {};
    const Part upper = part_of(negated->input(0)), lower = part_of(concat->input(1));
    const auto width = width_of(upper.x);
    if (!width || *width % 2 != 0 || upper.x != lower.x) return {};
    if (!upper.is(*width / 2, *width) || !lower.is(0, *width / 2)) return {};
    return {upper.x, false};
  }
  Value *first = nullptr, *second = nullptr;
  if (!pairs(value, &first, &second)) return {};
  Node* negated = producer(first, "Neg");
  const Part odd = part_of(negated ? negated->input(0) : nullptr), even = part_of(second);
  const auto width = width_of(odd.x);
  if (!width || *width % 2 != 0 || odd.x != even.x || odd.step != 2 || even.step != 2 || odd.begin != 1 ||
      even.begin != 0 || odd.end != *width || even.end < *width - 1)
    return {};
  return {odd.x, true};
}

/// Rewrites tables whose channels come in equal pairs (the two halves, or neighbours) to one of each pair.
class Tables {
 public:
  explicit Tables(Graph& graph) : graph_(graph) {}

  /// The value with half the channels; null when the pairs are not provably equal.
  Result<Value*> half(Value* table, bool interleaved) {
    const auto key = std::make_pair(table, interleaved);
    if (auto it = done_.find(key); it != done_.end()) return it->second;
    DECANT_ASSIGN(Value * result, build(table, interleaved, 0));
    done_[key] = result;
    return result;
  }

  /// [batch, positions, channels] of a table [batch, 1, positions, channels], or with `heads_third`
  /// [batch, positions, 1, channels]; null when it has another form.
  Result<Value*> flat(Value* table, bool heads_third) {
    if (!table->shape) return nullptr;
    const ir::Shape& s = *table->shape;
    const int64_t axis = heads_third ? 2 : 1;
    if (s.size() == 4 && s[static_cast<size_t>(axis)] == Dim(1)) {
      Node* unsqueeze = producer(table, "Unsqueeze");
      const auto axes = unsqueeze ? ints(unsqueeze->input(1)) : std::nullopt;
      if (axes && axes->size() == 1 && (*axes)[0] == axis) return unsqueeze->input(0);
      return add_typed(graph_, "Squeeze", {table, numbers({axis})});
    }
    if (heads_third) return nullptr;
    if (s.size() == 3 && s[0] == Dim(1)) return table;
    if (s.size() == 2) return add_typed(graph_, "Unsqueeze", {table, numbers({0})});
    return nullptr;
  }

 private:
  Value* numbers(std::vector<int64_t> v) {
    return graph_.add_constant(graph_.unique_name("axes"), ir::Constant::from_tensor(ir::Tensor::vector(v)));
  }

  static bool touches_last(const std::vector<int64_t>& axes, size_t rank) {
    for (const int64_t a : axes) {
      if (a == -1 || a == static_cast<int64_t>(rank) - 1) return true;
    }
    return false;
  }

  Result<Value*> build(Value* value, bool interleaved, int depth) {
    if (depth > 16 || !value->shape || value->shape->empty()) return nullptr;
    if (value->constant) return constant(value, interleaved);
    Node* node = value->producer;
    if (!node) return nullptr;
    if (!interleaved && node->is("Concat")) {
      return node->inputs().size() == 2 && node->input(0) == node->input(1) && along_last_axis(*node)
                 ? node->input(0)
                 : nullptr;
    }
    if (interleaved && node->is("Reshape")) {
      Value *a = nullptr, *b = nullptr;
      if (pairs(value, &a, &b) && a == b) return a;
      return repeated(value, node);
    }
    Value* x = node->input(0);
    const size_t rank = x && x->shape ? x->shape->size() : 0;
    if (rank == 0) return nullptr;
    bool same = node->is("Cos") || node->is("Sin") || node->is("Cast") || node->is("Neg");
    if (node->is("Unsqueeze") || node->is("Squeeze")) {
      const auto axes = ints(node->input(1));
      same = axes && !touches_last(*axes, node->is("Unsqueeze") ? value->shape->size() : rank);
    } else if (node->is("Slice")) {
      const auto axes = ints(node->input(3));
      same = axes && !touches_last(*axes, rank);
    } else if (node->is("Gather")) {
      const int64_t axis = node->int_attribute("axis", 0);
      same = axis != -1 && axis != static_cast<int64_t>(rank) - 1;
    } else if (node->is("Mul")) {
      const auto side = scalar_side(node);
      if (!side) return nullptr;
      DECANT_ASSIGN(Value * rest, build(side->rest, interleaved, depth + 1));
      if (!rest) return nullptr;
      return add_typed(graph_, "Mul", {rest, other_input(node, side->rest)});
    }
    if (!same) return nullptr;
    DECANT_ASSIGN(Value * part, half(x, interleaved));
    if (!part) return nullptr;
    std::vector<Value*> inputs = node->inputs();
    inputs[0] = part;
    return add_typed(graph_, node->op(), inputs, node->attributes);
  }

  /// The x of Reshape(Expand(Unsqueeze(x, last), [..., 2])).
  static Value* repeated(Value* value, Node* reshape) {
    Node* expand = producer(reshape->input(0), "Expand");
    if (!expand) expand = producer(reshape->input(0), "Tile");
    Value* x = expand ? unsqueezed_last(expand->input(0)) : nullptr;
    const auto& wide = reshape->input(0)->shape;
    if (!x || !x->shape || !wide || wide->size() != x->shape->size() + 1 || wide->back() != Dim(2))
      return nullptr;
    for (size_t i = 0; i < x->shape->size(); ++i) {
      if ((*wide)[i] != (*x->shape)[i]) return nullptr;
    }
    ir::Shape joined = *x->shape;
    joined.back() = joined.back() * Dim(2);
    return *value->shape == joined ? x : nullptr;
  }

  Result<Value*> constant(Value* value, bool interleaved) {
    const ir::ConstantPtr& c = value->constant;
    const int64_t width = c->dims().back();
    if (width <= 0 || width % 2 != 0 || c->bytes() > kMaxTableBytes) return nullptr;
    DECANT_ASSIGN(const ir::Tensor full, c->materialize());
    std::vector<int64_t> dims = c->dims();
    dims.back() = width / 2;
    DECANT_ASSIGN(ir::Tensor part, ir::Tensor::allocate(c->dtype(), dims));
    const size_t size = size_of(c->dtype());
    const auto* from = static_cast<const std::byte*>(full.data());
    auto* to = part.mutable_data_as<std::byte>();
    for (int64_t row = 0; row < c->elements() / width; ++row) {
      for (int64_t i = 0; i < width / 2; ++i) {
        const int64_t first = interleaved ? 2 * i : i, second = interleaved ? first + 1 : i + width / 2;
        const std::byte* a = from + static_cast<size_t>(row * width + first) * size;
        if (std::memcmp(a, from + static_cast<size_t>(row * width + second) * size, size) != 0)
          return nullptr;
        std::memcpy(to + static_cast<size_t>(row * width / 2 + i) * size, a, size);
      }
    }
    return graph_.add_constant(graph_.unique_name(value->name + "_half"), ir::Constant::from_tensor(part));
  }

  Graph& graph_;
  std::map<std::pair<Value*, bool>, Value*> done_;
};

/// Whether heads come third in x, given a table that stretches over them; nothing when it does not fit.
std::optional<bool> heads_third(const Value* x, const Value* table) {
  if (!x->shape || x->shape->size() != 4 || !table->shape) return std::nullopt;
  const ir::Shape &xs = *x->shape, &ts = *table->shape;
  if (ts.size() < 4) return false;
  if (ts.size() != 4 || (ts[0] != xs[0] && ts[0] != Dim(1))) return std::nullopt;
  if (ts[1] == Dim(1) && ts[2] == xs[2]) return false;
  if (ts[2] == Dim(1) && ts[1] == xs[1]) return true;
  return std::nullopt;
}

/// The RotaryEmbedding of x [batch, heads, positions, channels] (heads third: with the axes exchanged first).
Result<Value*> rotary(Graph& graph, Value* x, Value* cos, Value* sin, bool third, Attributes attributes) {
  const std::vector<int64_t> exchange = {0, 2, 1, 3};
  if (third) {
    DECANT_ASSIGN(x, add_typed(graph, "Transpose", {x}, {{"perm", exchange}}));
  }
  const ir::Shape &xs = *x->shape, &cs = *cos->shape, &ss = *sin->shape;
  if (cs.size() != 3 || cs != ss || cs[1] != xs[2] || (cs[0] != xs[0] && cs[0] != Dim(1))) return nullptr;
  if (cos->dtype != x->dtype || sin->dtype != x->dtype) return nullptr;
  DECANT_ASSIGN(Value * y, add_typed(graph, "RotaryEmbedding", {x, cos, sin}, std::move(attributes)));
  if (!third) return y;
  return add_typed(graph, "Transpose", {y}, {{"perm", exchange}});
}

/// concat(a·c - b·s, b·c + a·s[, rest]) of the halves a, b of x: the RotaryEmbedding of x, or null.
Result<Value*> from_halves(Graph& graph, Tables& tables, Node& concat) {
  if (concat.inputs().size() < 2 || concat.inputs().size() > 3 || !along_last_axis(concat)) return nullptr;
  Node *minus = producer(concat.input(0), "Sub"), *plus = producer(concat.input(1), "Add");
  Node* first = minus ? producer(minus->input(0), "Mul") : nullptr;
  if (!first || !plus) return nullptr;
  for (size_t side = 0; side < 2; ++side) {
    Value *a = first->input(side), *cos = first->input(1 - side);
    const Part lower = part_of(a);
    if (!lower.x || lower.begin != 0 || lower.step != 1) continue;
    Node* second = producer(minus->input(1), "Mul");
    Value *b = nullptr, *sin = nullptr;
    for (size_t s = 0; second && s < 2 && !b; ++s) {
      const Part upper = part_of(second->input(s));
      if (upper.x != lower.x || !upper.is(lower.end, 2 * lower.end)) continue;
      b = second->input(s);
      sin = second->input(1 - s);
    }
    if (!b) continue;
    bool matches = false;
    for (size_t s = 0; s < 2; ++s) {
      Node *bc = producer(plus->input(s), "Mul"), *as = producer(plus->input(1 - s), "Mul");
      matches = matches || (bc && as && other_input(bc, b) == cos && other_input(as, a) == sin);
    }
    if (!matches) continue;
    const auto width = width_of(lower.x);
    Attributes attributes;
    if (concat.inputs().size() == 3) {
      if (!width || !part_of(concat.input(2)).is(2 * lower.end, *width) ||
          part_of(concat.input(2)).x != lower.x)
        continue;
      attributes["rotary_embedding_dim"] = 2 * lower.end;
    } else if (!width || *width != 2 * lower.end) {
      continue;
    }
    const auto third = heads_third(lower.x, cos);
    if (!third || heads_third(lower.x, sin) != third) continue;
    DECANT_ASSIGN(Value * flat_cos, tables.flat(cos, *third));
    DECANT_ASSIGN(Value * flat_sin, tables.flat(sin, *third));
    if (!flat_cos || !flat_sin || !flat_cos->shape || !flat_sin->shape) continue;
    return rotary(graph, lower.x, flat_cos, flat_sin, *third, std::move(attributes));
  }
  return nullptr;
}

/// x · cos + turned(x) · sin: the RotaryEmbedding of x, or null.
Result<Value*> from_turned(Graph& graph, Tables& tables, Node& add) {
  for (size_t side = 0; side < 2; ++side) {
    Node *plain = producer(add.input(side), "Mul"), *other = producer(add.input(1 - side), "Mul");
    if (!plain || !other) continue;
    Turned t;
    Value* sin = nullptr;
    for (size_t s = 0; s < 2 && !t.x; ++s) {
      t = turned(other->input(s));
      sin = other->input(1 - s);
    }
    Value* cos = t.x ? other_input(plain, t.x) : nullptr;
    const auto third = cos ? heads_third(t.x, cos) : std::nullopt;
    if (!third || heads_third(t.x, sin) != third) continue;
    DECANT_ASSIGN(Value * half_cos, tables.half(cos, t.interleaved));
    DECANT_ASSIGN(Value * half_sin, tables.half(sin, t.interleaved));
    if (!half_cos || !half_sin) continue;
    DECANT_ASSIGN(half_cos, tables.flat(half_cos, *third));
    DECANT_ASSIGN(half_sin, tables.flat(half_sin, *third));
    if (!half_cos || !half_sin || !half_cos->shape || !half_sin->shape) continue;
    Attributes attributes;
    if (t.interleaved) attributes["interleaved"] = int64_t{1};
    return rotary(graph, t.x, half_cos, half_sin, *third, std::move(attributes));
  }
  return nullptr;
}

/// Concat of the rotated first channels and the rest: the RotaryEmbedding of all of x, or null.
Result<Value*> from_partial(Graph& graph, Node& concat) {
  if (!concat.is("Concat") || concat.inputs().size() != 2 || !along_last_axis(concat)) return nullptr;
  Node* rotation = producer(concat.input(0), "RotaryEmbedding");
  if (!rotation || rotation->input(3) || rotation->int_attribute("rotary_embedding_dim", 0) != 0)
    return nullptr;
  const Part first = part_of(rotation->input(0)), rest = part_of(concat.input(1));
  const auto width = width_of(first.x);
  if (!width || first.x != rest.x || !first.is(0, first.end) || !rest.is(first.end, *width)) return nullptr;
  Attributes attributes = rotation->attributes;
  attributes["rotary_embedding_dim"] = first.end;
  return add_typed(graph, "RotaryEmbedding", {first.x, rotation->input(1), rotation->input(2)},
                   std::move(attributes));
}

}  // namespace

Result<bool> lift_rotary(Graph& graph) {
  Tables tables(graph);
  DECANT_ASSIGN(const bool whole, rewrite(graph, [&](Node& node) -> Result<Value*> {
                  if (node.is("Concat")) return from_halves(graph, tables, node);
                  return node.is("Add") ? from_turned(graph, tables, node) : Result<Value*>(nullptr);
                }));
  DECANT_ASSIGN(const bool partial, rewrite(graph, [&](Node& node) { return from_partial(graph, node); }));
  return whole || partial;
}

}  // namespace decant::passes
