#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "passes/match.h"
#include "passes/passes.h"

namespace decant::passes {
namespace {

using ir::Dim;
using ir::Graph;
using ir::Node;
using ir::Value;

/// From here on down, adding a number to any score gives the number: masked keys weigh exactly nothing beside
/// others, and a row of such keys is uniform.
constexpr double kAbsorbing = -1e30;

/// One step between the product of query and key and the softmax, from the outermost inwards.
struct Term {
  Value* added = nullptr;  ///< float, added to the scores; null when the scores are replaced
  Value* keep = nullptr;   ///< bool, where the term is known to be (keep ? 0 or the score : off)
  bool inverted = false;   ///< keep is false where the score stays
  double off = 0;
};

struct Scores {
  Value *q = nullptr, *kt = nullptr;  ///< [batch, heads, queries, channels], [batch, heads, channels, keys]
  Value* product = nullptr;           ///< q · kt
  std::vector<Term> terms;
  double scale = 1.0, softcap = 0.0;
  Value* sinks = nullptr;  ///< [heads], a score more in each row of a head
  bool reshaped = false;   ///< between [batch · heads, ...] and [batch, heads, ...] on the way
};

size_t rank(const Value* v) { return v && v->shape ? v->shape->size() : 0; }

/// Follows scalar factors: value = factor · result.
Value* peel_scale(Value* value, double* factor) {
  for (int depth = 0; depth < 4; ++depth) {
    Value* plain = skip_float_casts(value);
    Node* node = producer(plain, "Mul");
    const auto side = node ? scalar_side(node) : std::nullopt;
    if (side) {
      *factor *= side->number;
      value = side->rest;
      continue;
    }
    if (Node* div = producer(plain, "Div")) {
      if (const auto n = scalar(div->input(1)); n && *n != 0.0) {
        *factor /= *n;
        value = div->input(0);
        continue;
      }
    }
    return plain;
  }
  return value;
}

/// Steps over casts that keep every number.
Value* skip_widening_casts(Value* value) {
  while (Node* cast = producer(value, "Cast")) {
    Value* x = cast->input(0);
    if (!is_float(x->dtype) || !is_float(value->dtype) || size_of(x->dtype) > size_of(value->dtype)) break;
    if (size_of(x->dtype) == size_of(value->dtype) && x->dtype != value->dtype) break;
    value = x;
  }
  return value;
}

/// The bool of a Cast to a float dtype; `inverted` turns over at each Not.
Value* bool_of(Value* value, bool* inverted) {
  if (Node* cast = producer(value, "Cast")) value = cast->input(0);
  if (value->dtype != DType::kBool) return nullptr;
  while (Node* negation = producer(value, "Not")) {
    *inverted = !*inverted;
    value = negation->input(0);
  }
  return value;
}

/// An added mask, as (keep ? 0 : off) where it is one.
Term added_term(Value* mask) {
  Term term;
  term.added = mask;
  Value* plain = skip_widening_casts(mask);
  if (Node* where = producer(plain, "Where")) {
    const auto a = scalar(where->input(1)), b = scalar(where->input(2));
    if (a && b && (*a == 0.0 || *b == 0.0)) {
      term.inverted = *a != 0.0;
      term.keep = bool_of(where->input(0), &term.inverted);
      term.off = *a == 0.0 ? *b : *a;
    }
  } else if (Node* mul = producer(plain, "Mul")) {
    // Cast(masked) · lowest; with an infinity the other keys would be NaN.
    if (const auto side = scalar_side(mul); side && std::isfinite(side->number)) {
      term.inverted = true;
      term.keep = bool_of(side->rest, &term.inverted);
      term.off = side->number;
    }
  }
  if (term.off > kAbsorbing) term.keep = nullptr;
  return term;
}

/// Whether the reshape only joins or splits the two leading dims of scores or operands.
bool joins_heads(const Value* a, const Value* b) {
  if (rank(a) == 3) std::swap(a, b);
  if (rank(a) != 4 || rank(b) != 3) return false;
  const ir::Shape &four = *a->shape, &three = *b->shape;
  return four[2] == three[1] && four[3] == three[2] && four[0] * four[1] == three[0];
}

/// Whether scores lead to a product of two computed matrices.
bool leads_to_product(Value* value) {
  double ignored = 1;
  for (int depth = 0; depth < 8; ++depth) {
    value = peel_scale(value, &ignored);
    if (Node* product = producer(value, "MatMul")) return rank(product->input(1)) >= 3;
    Node* node = value->producer;
    if (!node) return false;
    if (node->is("Tanh") || (node->is("Reshape") && joins_heads(value, node->input(0)))) {
      value = node->input(0);
    } else if (node->is("Where")) {
      value = scalar(node->input(2)) ? node->input(1) : node->input(2);
    } else if (node->is("Add")) {
      return leads_to_product(node->input(0)) || leads_to_product(node->input(1));
    } else {
      return false;
    }
  }
  return false;
}

/// Whether the mask stretches over the scores without widening them. A last dim of 1 would mean one key to
/// Attention.
bool fits(const Value* mask, const Value* scores) {
  const size_t n = rank(mask);
  if (n == 0 || n > rank(scores)) return false;
  for (size_t i = 0; i < n; ++i) {
    const Dim &m = (*mask->shape)[n - 1 - i], &s = (*scores->shape)[rank(scores) - 1 - i];
    if (m == s) continue;
    if (i == 0 ? m.is_constant() || s.is_constant() : m != Dim(1) && (m.is_constant() || s.is_constant()))
      return false;
  }
  return true;
}

std::optional<Scores> match_scores(Value* value) {
  Scores s;
  for (int depth = 0; depth < 10; ++depth) {
    value = peel_scale(value, &s.scale);
    Node* node = value->producer;
    if (!node) return std::nullopt;
    if (node->is("MatMul")) {
      s.product = value;
      s.q = peel_scale(node->input(0), &s.scale);
      s.kt = peel_scale(node->input(1), &s.scale);
      return s;
    }
    if (node->is("Reshape")) {
      if (!joins_heads(value, node->input(0))) return std::nullopt;
      s.reshaped = true;
      value = node->input(0);
      continue;
    }
    if (node->is("Tanh")) {
      if (s.softcap != 0.0 || s.scale == 1.0) return std::nullopt;
      s.softcap = s.scale;
      s.scale = 1.0;
      value = peel_scale(node->input(0), &s.scale);
      s.scale *= s.softcap;
      continue;
    }
    if (s.scale != 1.0 || s.softcap != 0.0) return std::nullopt;
    if (node->is("Add")) {
      const size_t side = leads_to_product(node->input(0)) ? 0 : 1;
      Value* mask = node->input(1 - side);
      if (!fits(mask, node->input(side)) || !is_float(mask->dtype)) return std::nullopt;
      // Masks are added at rank 4: at rank 3 heads and batch are one.
      if (rank(value) == 3 && s.reshaped) return std::nullopt;
      s.terms.push_back(added_term(mask));
      value = node->input(side);
      continue;
    }
    if (node->is("Where")) {
      Term term;
      size_t side = 1;
      auto off = scalar(node->input(2));
      if (!off) {
        off = scalar(node->input(1));
        side = 2;
        term.inverted = true;
      }
      if (!off || *off > kAbsorbing || !fits(node->input(0), node->input(side))) return std::nullopt;
      if (rank(value) == 3 && s.reshaped) return std::nullopt;
      term.keep = bool_of(node->input(0), &term.inverted);
      term.off = *off;
      s.terms.push_back(term);
      value = node->input(side);
      continue;
    }
    return std::nullopt;
  }
  return std::nullopt;
}

/// k of Reshape(Expand(Unsqueeze(k, 2))): each head repeated for its group of query heads.
Value* unrepeated(Value* value) {
  Node* reshape = producer(value, "Reshape");
  Node* expand = reshape ? producer(reshape->input(0), "Expand") : nullptr;
  Node* unsqueeze = expand ? producer(expand->input(0), "Unsqueeze") : nullptr;
  const auto axes = unsqueeze ? ints(unsqueeze->input(1)) : std::nullopt;
  if (!axes || axes->size() != 1 || (*axes)[0] != 2) return value;
  Value* k = unsqueeze->input(0);
  const auto &from = k->shape, &wide = expand->output(0)->shape, &to = value->shape;
  if (!from || from->size() != 4 || !wide || wide->size() != 5 || !to || to->size() != 4) return value;
  if ((*wide)[0] != (*from)[0] || (*wide)[1] != (*from)[1] || (*wide)[3] != (*from)[2] ||
      (*wide)[4] != (*from)[3])
    return value;
  if ((*to)[2] != (*from)[2] || (*to)[3] != (*from)[3] || (*to)[1] != (*wide)[1] * (*wide)[2]) return value;
  return k;
}

/// Steps over what exporters put after the softmax: casts, and NaN rows to zero.
Value* skip_guards(Value* value, bool* nan_to_zero) {
  for (int depth = 0; depth < 4; ++depth) {
    value = skip_float_casts(value);
    Node* where = producer(value, "Where");
    if (!where) return value;
    Node* is_nan = producer(where->input(0), "IsNaN");
    const auto zero = scalar(where->input(1));
    if (!is_nan || is_nan->input(0) != where->input(2) || !zero || *zero != 0.0) return value;
    *nan_to_zero = true;
    value = where->input(2);
  }
  return value;
}

bool is_last_axis(const Node& node) {
  const int64_t axis = node.int_attribute("axis", -1);
  return axis == -1 || axis == static_cast<int64_t>(rank(node.output(0))) - 1;
}

/// The Concat of scores [batch, heads, queries, keys] and one column of sinks whose softmax `value` is, with
/// the largest score taken off or not; else null.
Node* with_sinks(Value* value) {
  Node* softmax = producer(value, "Softmax");
  if (!softmax || rank(value) != 4 || !is_last_axis(*softmax)) return nullptr;
  Value* scores = skip_float_casts(softmax->input(0));
  if (Node* sub = producer(scores, "Sub")) {
    Node* largest = producer(sub->input(1), "ReduceMax");
    const auto axes = largest ? ints(largest->input(1)) : std::nullopt;
    if (!axes || axes->size() != 1 || ((*axes)[0] != -1 && (*axes)[0] != 3) ||
        largest->input(0) != sub->input(0))
      return nullptr;
    scores = skip_float_casts(sub->input(0));
  }
  Node* concat = producer(scores, "Concat");
  if (!concat || concat->inputs().size() != 2 || rank(concat->input(1)) != 4) return nullptr;
  const int64_t axis = concat->int_attribute("axis", 0);
  return (axis == -1 || axis == 3) && concat->input(1)->shape->back() == Dim(1) ? concat : nullptr;
}

class AttentionLifter {
 public:
  explicit AttentionLifter(Graph& graph) : graph_(graph) {}

  /// The Attention of the product softmax(scores) · v, or null. `guarded`: rows whose mask (this value) holds
  /// no true are zero afterwards.
  Result<Value*> lift(Node& product, Value* guarded) {
    Value* y = product.output(0);
    if (!product.is("MatMul") || (rank(y) != 4 && rank(y) != 3)) return nullptr;
    bool nan_to_zero = false;
    Value* weights = skip_guards(product.input(0), &nan_to_zero);
    bool split = false;
    if (Node* reshape = producer(weights, "Reshape"); reshape && joins_heads(weights, reshape->input(0))) {
      weights = skip_guards(reshape->input(0), &nan_to_zero);
      split = true;
    }
    Value* sinks = nullptr;
    Value* scores = nullptr;
    if (Node* slice = producer(weights, "Slice")) {
      const auto begin = ints(slice->input(1));
      Node* concat = with_sinks(skip_guards(slice->input(0), &nan_to_zero));
      if (!concat || !begin || *begin != std::vector<int64_t>{0} || !weights->shape) return nullptr;
      scores = concat->input(0);
      if (!scores->shape || *scores->shape != *weights->shape) return nullptr;
      DECANT_ASSIGN(sinks, per_head(concat->input(1), (*scores->shape)[1]));
      if (!sinks) return nullptr;
    } else {
      Node* softmax = producer(weights, "Softmax");
      if (!softmax || !is_last_axis(*softmax)) return nullptr;
      scores = softmax->input(0);
    }
    auto s = match_scores(skip_float_casts(scores));
    if (s) s->sinks = sinks;
    if (!s || !(s->scale > 0) || !std::isfinite(s->scale)) return nullptr;
    if (rank(s->q) != rank(y) || rank(s->kt) != rank(y) || rank(product.input(1)) != rank(y)) return nullptr;
    const DType dtype = y->dtype;
    if (s->q->dtype != dtype || s->kt->dtype != dtype || product.input(1)->dtype != dtype) return nullptr;
    return rank(y) == 4 ? lift4(*s, product.input(1), nan_to_zero, guarded)
                        : lift3(*s, product.input(1), y, s->reshaped || split, nan_to_zero, guarded);
  }

 private:
  Result<Value*> lift4(const Scores& s, Value* v, bool nan_to_zero, Value* guarded) {
    DECANT_ASSIGN(Value * k, untransposed(s.kt));
    if (!k) return nullptr;
    double scale = s.scale;
    k = peel_scale(k, &scale);
    return attend(s, s.q, k, v, scale, nan_to_zero, guarded);
  }

  /// Batch and heads as one dim: as they were before they were joined, or as a batch of single heads.
  Result<Value*> lift3(const Scores& s, Value* v, Value* y, bool joined, bool nan_to_zero, Value* guarded) {
    DECANT_ASSIGN(Value * k3, untransposed(s.kt));
    if (!k3) return nullptr;
    double scale = s.scale;
    k3 = peel_scale(k3, &scale);
    if (!joined) {
      if (!s.terms.empty()) return nullptr;
      Value* one = axes({1});
      DECANT_ASSIGN(Value * q, add_typed(graph_, "Unsqueeze", {s.q, one}));
      DECANT_ASSIGN(Value * k, add_typed(graph_, "Unsqueeze", {k3, one}));
      DECANT_ASSIGN(v, add_typed(graph_, "Unsqueeze", {v, one}));
      DECANT_ASSIGN(Value * attention, attend(s, q, k, v, scale, nan_to_zero, guarded));
      if (!attention) return nullptr;
      return add_typed(graph_, "Squeeze", {attention, one});
    }
    Value *q = separated(s.q), *k = separated(k3), *v4 = separated(v);
    if (!q || !k || !v4) return nullptr;
    q = peel_scale(q, &scale);
    k = peel_scale(k, &scale);
    DECANT_ASSIGN(Value * attention, attend(s, q, k, v4, scale, nan_to_zero, guarded));
    if (!attention) return nullptr;
    DECANT_ASSIGN(Value * tail, add_typed(graph_, "Shape", {attention}, {{"start", int64_t{2}}}));
    DECANT_ASSIGN(Value * shape, add_typed(graph_, "Concat", {axes({-1}), tail}, {{"axis", int64_t{0}}}));
    DECANT_ASSIGN(Value * joined_again, add_typed(graph_, "Reshape", {attention, shape}));
    if (rank(joined_again) != 3 || !y->shape) return nullptr;
    return joined_again;
  }

  Result<Value*> attend(const Scores& s, Value* q, Value* k, Value* v, double scale, bool nan_to_zero,
                        Value* guarded) {
    if (rank(q) != 4 || rank(k) != 4 || rank(v) != 4) return nullptr;
    Value *k_once = unrepeated(k), *v_once = unrepeated(v);
    if ((*k_once->shape)[1] == (*v_once->shape)[1]) {
      k = k_once;
      v = v_once;
    }
    const ir::Shape &qs = *q->shape, &ks = *k->shape, &vs = *v->shape;
    // Channels and keys meet in products, which do not stretch them: they agree or the source fails too.
    if (qs[0] != ks[0] || ks[0] != vs[0] || ks[1] != vs[1]) return nullptr;
    const auto heads = qs[1].as_constant(), groups = ks[1].as_constant();
    if (qs[1] != ks[1] && (!heads || !groups || *groups <= 0 || *heads % *groups != 0)) return nullptr;

    Attributes attributes = {{"scale", static_cast<float>(scale)}};
    if (s.softcap > 0) attributes["softcap"] = static_cast<float>(s.softcap);
    std::vector<Value*> inputs = {q, k, v};
    if (!s.terms.empty()) {
      bool zero_rows = nan_to_zero;
      DECANT_ASSIGN(Value * mask, mask_of(s, guarded, &zero_rows));
      if (!mask) return nullptr;
      inputs.push_back(mask);
      // A sink takes what no key takes.
      if (!zero_rows && !s.sinks) attributes["empty_rows_nan"] = int64_t{1};
    } else if (guarded) {
      return nullptr;
    }
    if (s.sinks) {
      inputs.resize(7, nullptr);
      inputs.push_back(s.sinks);
    }
    return add_typed(graph_, "Attention", inputs, std::move(attributes));
  }

  /// The mask of all terms, or null when none gives the same rows. As bools where rows without a key are zero
  /// or NaN in the source too, else as numbers, which keep such rows as they are.
  Result<Value*> mask_of(const Scores& s, Value* guarded, bool* zero_rows) {
    bool bools = true, infinite = true;
    for (const Term& t : s.terms) {
      bools = bools && t.keep;
      infinite = infinite && t.off == -std::numeric_limits<double>::infinity();
    }
    const bool alone = bools && s.terms.size() == 1 && !s.terms[0].inverted;
    if (guarded && (!alone || s.terms[0].keep != guarded)) return nullptr;
    if (guarded) {
      *zero_rows = true;
      return guarded;
    }
    std::string key = bools && infinite ? "bool" : "float";
    for (const Term& t : s.terms) {
      key += ',' + std::to_string(reinterpret_cast<uintptr_t>(t.added ? t.added : t.keep)) +
             (t.added ? "+" : "=") + (t.inverted ? "!" : "") + std::to_string(t.off);
    }
    if (auto it = masks_.find(key); it != masks_.end()) return it->second;
    Value* mask = nullptr;
    for (auto t = s.terms.rbegin(); t != s.terms.rend(); ++t) {
      if (bools && infinite) {
        Value* keep = t->keep;
        if (t->inverted) {
          DECANT_ASSIGN(keep, add_typed(graph_, "Not", {keep}));
        }
        if (mask) {
          DECANT_ASSIGN(mask, add_typed(graph_, "And", {mask, keep}));
        } else {
          mask = keep;
        }
        continue;
      }
      if (t->added) {
        if (!mask) {
          mask = t->added;
        } else if (mask->dtype != t->added->dtype) {
          return nullptr;
        } else {
          DECANT_ASSIGN(mask, add_typed(graph_, "Add", {mask, t->added}));
        }
        continue;
      }
      if (!t->keep) return nullptr;
      const DType dtype = mask ? mask->dtype : s.product->dtype;
      DECANT_ASSIGN(Value * off, number(t->off, dtype));
      Value* on = mask;
      if (!on) {
        DECANT_ASSIGN(on, number(0.0, dtype));
      }
      std::vector<Value*> inputs = {t->keep, t->inverted ? off : on, t->inverted ? on : off};
      DECANT_ASSIGN(mask, add_typed(graph_, "Where", inputs));
    }
    if (!fits(mask, s.product) && !(s.reshaped && rank(mask) == 4)) return nullptr;
    masks_[key] = mask;
    return mask;
  }

  /// Users of a value may be in another sub-graph than this one.
  bool is_here(const Node* node) const {
    return std::any_of(graph_.nodes().begin(), graph_.nodes().end(),
                       [node](const auto& n) { return n.get() == node; });
  }

  /// [..., rows, columns] of the same numbers as `value`, [..., columns, rows].
  Result<Value*> untransposed(Value* value) {
    const size_t n = rank(value);
    Node* transpose = producer(value, "Transpose");
    const auto* perm = transpose ? transpose->attribute<std::vector<int64_t>>("perm") : nullptr;
    if (perm && n == 4 && *perm == std::vector<int64_t>{0, 1, 3, 2}) return transpose->input(0);
    if (perm && n == 3 && *perm == std::vector<int64_t>{0, 2, 1}) return transpose->input(0);
    if (perm && n == 4 && *perm == std::vector<int64_t>{0, 2, 3, 1}) {
      const std::vector<int64_t> heads_first = {0, 2, 1, 3};
      for (Node* other : transpose->input(0)->users()) {
        const auto* p = other->is("Transpose") ? other->attribute<std::vector<int64_t>>("perm") : nullptr;
        if (p && *p == heads_first && is_here(other)) return other->output(0);
      }
      return add_typed(graph_, "Transpose", {transpose->input(0)}, {{"perm", heads_first}});
    }
    if (n == 4) {
      if (Value* x = transposed_as_matrices(value)) return x;
    }
    // Joined heads: the transpose may lie before the reshape.
    if (Node* reshape = producer(value, "Reshape");
        reshape && n == 3 && joins_heads(value, reshape->input(0))) {
      Node* inner = producer(reshape->input(0), "Transpose");
      const auto* p = inner ? inner->attribute<std::vector<int64_t>>("perm") : nullptr;
      if (p && *p == std::vector<int64_t>{0, 1, 3, 2} && rank(inner->input(0)) == 4) {
        DECANT_ASSIGN(Value * tail, add_typed(graph_, "Shape", {inner->input(0)}, {{"start", int64_t{2}}}));
        DECANT_ASSIGN(Value * shape, add_typed(graph_, "Concat", {axes({-1}), tail}, {{"axis", int64_t{0}}}));
        return add_typed(graph_, "Reshape", {inner->input(0), shape});
      }
    }
    std::vector<int64_t> swap(n);
    for (size_t i = 0; i < n; ++i) swap[i] = static_cast<int64_t>(i);
    std::swap(swap[n - 1], swap[n - 2]);
    return add_typed(graph_, "Transpose", {value}, {{"perm", swap}});
  }

  /// x of Reshape(Transpose(Reshape(x, [-1, rows, columns]), [0, 2, 1]), [..., columns, rows]).
  static Value* transposed_as_matrices(Value* value) {
    Node* outer = producer(value, "Reshape");
    Node* transpose = outer ? producer(outer->input(0), "Transpose") : nullptr;
    const auto* perm = transpose ? transpose->attribute<std::vector<int64_t>>("perm") : nullptr;
    Node* inner =
        perm && *perm == std::vector<int64_t>{0, 2, 1} ? producer(transpose->input(0), "Reshape") : nullptr;
    if (!inner || rank(inner->input(0)) != 4 || rank(inner->output(0)) != 3) return nullptr;
    const ir::Shape &x = *inner->input(0)->shape, &mid = *inner->output(0)->shape, &y = *value->shape;
    const bool same =
        mid[1] == x[2] && mid[2] == x[3] && y[0] == x[0] && y[1] == x[1] && y[2] == x[3] && y[3] == x[2];
    return same ? inner->input(0) : nullptr;
  }

  /// [batch, heads, ...] of a value [batch · heads, ...] made by joining them.
  static Value* separated(Value* value) {
    Node* reshape = producer(value, "Reshape");
    return reshape && joins_heads(value, reshape->input(0)) && rank(value) == 3 ? reshape->input(0) : nullptr;
  }

  /// The f32 vector of a value [1, heads, 1, 1] that is spread over batch and queries, or null.
  Result<Value*> per_head(Value* value, const Dim& heads) {
    value = skip_float_casts(value);
    if (Node* expand = producer(value, "Expand")) value = skip_float_casts(expand->input(0));
    const ir::Shape want = {Dim(1), heads, Dim(1), Dim(1)};
    if (!value->shape || *value->shape != want || value->dtype != DType::kFloat32) return nullptr;
    return add_typed(graph_, "Reshape", {value, axes({-1})});
  }

  Value* axes(std::vector<int64_t> numbers) {
    return graph_.add_constant(graph_.unique_name("axes"),
                               ir::Constant::from_tensor(ir::Tensor::vector(numbers)));
  }

  Result<Value*> number(double x, DType dtype) {
    ir::ConstantPtr c = ir::Constant::from_tensor(ir::Tensor::scalar(static_cast<float>(x)));
    return graph_.add_constant(graph_.unique_name("mask_number"), ir::cast_constant(c, dtype));
  }

  Graph& graph_;
  std::map<std::string, Value*> masks_;
};

/// The bool mask of Less(ReduceSum(Cast(mask), last axis), 1): true for rows without a key.
Value* empty_rows_of(Value* condition) {
  Node* less = producer(condition, "Less");
  const auto one = less ? scalar(less->input(1)) : std::nullopt;
  Node* sum = one && *one > 0 && *one <= 1 ? producer(less->input(0), "ReduceSum") : nullptr;
  if (!sum || sum->int_attribute("keepdims", 1) == 0) return nullptr;
  const auto axes = ints(sum->input(1));
  Node* cast = producer(sum->input(0), "Cast");
  if (!axes || axes->size() != 1 || !cast || cast->input(0)->dtype != DType::kBool) return nullptr;
  if ((*axes)[0] != -1 && (*axes)[0] != static_cast<int64_t>(rank(cast->input(0))) - 1) return nullptr;
  return cast->input(0);
}

}  // namespace

Result<bool> lift_attention(Graph& graph) {
  AttentionLifter lifter(graph);
  DECANT_ASSIGN(const bool guarded, rewrite(graph, [&](Node& where) -> Result<Value*> {
                  if (!where.is("Where")) return nullptr;
                  const auto zero = scalar(where.input(1));
                  Node* product = producer(where.input(2), "MatMul");
                  if (!zero || *zero != 0.0 || !product || !where.output(0)->shape ||
                      where.output(0)->shape != where.input(2)->shape)
                    return nullptr;
                  Value* mask = empty_rows_of(where.input(0));
                  return mask ? lifter.lift(*product, mask) : Result<Value*>(nullptr);
                }));
  DECANT_ASSIGN(const bool plain,
                rewrite(graph, [&](Node& product) { return lifter.lift(product, nullptr); }));
  return guarded || plain;
}

}  // namespace decant::passes
