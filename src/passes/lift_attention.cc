#include <cmath>

#include "passes/match.h"
#include "passes/passes.h"

namespace decant::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::Value;

/// Numbers this low stand for "not attended" in additive masks.
constexpr double kMasked = -1e4;

struct Scores {
  Value* q = nullptr;     ///< [batch, heads, queries, channels]
  Value* k = nullptr;     ///< [batch, heads, keys, channels], heads possibly repeated
  Value* mask = nullptr;  ///< bool (true: attend) or float (added); broadcasts to the scores
  double scale = 1.0;
  double softcap = 0.0;
};

/// The bool mask of Where(mask, 0, very negative), else the float mask itself.
Value* as_bool_mask(Value* mask) {
  Value* plain = skip_float_casts(mask);
  if (Node* where = producer(plain, "Where")) {
    const auto on = scalar(where->input(1)), off = scalar(where->input(2));
    if (on && off && *on == 0.0 && *off <= kMasked) return where->input(0);
  }
  return mask;
}

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

/// k of kᵀ: a Transpose that swaps the last two of four axes, or one that makes [0, 2, 3, 1] of [batch, keys,
/// heads, channels] (then a Transpose to [batch, heads, keys, channels] is added by the caller's graph).
Value* untransposed(Value* value) {
  Node* transpose = producer(value, "Transpose");
  const auto* perm = transpose ? transpose->attribute<std::vector<int64_t>>("perm") : nullptr;
  if (!perm || *perm != std::vector<int64_t>{0, 1, 3, 2}) return nullptr;
  return transpose->input(0);
}

std::optional<Scores> match_scores(Value* value) {
  Scores s;
  for (int depth = 0; depth < 6; ++depth) {
    value = peel_scale(value, &s.scale);
    if (Node* add = producer(value, "Add")) {
      if (s.mask || s.scale != 1.0) return std::nullopt;
      // The scores are the side that is a product of matrices, directly or after a scale.
      double ignored = 1.0;
      const bool first = producer(peel_scale(add->input(0), &ignored), "MatMul") != nullptr;
      s.mask = add->input(first ? 1 : 0);
      value = add->input(first ? 0 : 1);
      continue;
    }
    if (Node* where = producer(value, "Where")) {
      const auto off = scalar(where->input(2));
      if (s.mask || s.scale != 1.0 || !off || *off > kMasked) return std::nullopt;
      s.mask = where->input(0);
      value = where->input(1);
      continue;
    }
    if (Node* tanh = producer(value, "Tanh")) {
      if (s.softcap != 0.0 || s.scale == 1.0) return std::nullopt;
      s.softcap = s.scale;
      s.scale = 1.0;
      value = peel_scale(tanh->input(0), &s.scale);
      s.scale *= s.softcap;
      continue;
    }
    Node* product = producer(value, "MatMul");
    if (!product) return std::nullopt;
    s.q = peel_scale(product->input(0), &s.scale);
    Value* kt = peel_scale(product->input(1), &s.scale);
    s.k = untransposed(kt);
    if (s.k) s.k = peel_scale(s.k, &s.scale);
    return s.k ? std::optional(s) : std::nullopt;
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
  if ((*wide)[1] != (*from)[1] || (*wide)[3] != (*from)[2] || (*wide)[4] != (*from)[3]) return value;
  if ((*to)[2] != (*from)[2] || (*to)[3] != (*from)[3] || (*to)[1] != (*wide)[1] * (*wide)[2]) return value;
  return k;
}

/// Steps over the guards that exporters put after the softmax: casts, and NaN rows to zero.
Value* skip_guards(Value* value) {
  for (int depth = 0; depth < 4; ++depth) {
    value = skip_float_casts(value);
    Node* where = producer(value, "Where");
    if (!where) return value;
    Node* is_nan = producer(where->input(0), "IsNaN");
    const auto zero = scalar(where->input(1));
    if (!is_nan || is_nan->input(0) != where->input(2) || !zero || *zero != 0.0) return value;
    value = where->input(2);
  }
  return value;
}

bool rank4(const Value* v) { return v->shape && v->shape->size() == 4; }

}  // namespace

Result<bool> lift_attention(Graph& graph) {
  return rewrite(graph, [&](Node& product) -> Result<Value*> {
    if (!product.is("MatMul") || !rank4(product.output(0))) return nullptr;
    Node* softmax = producer(skip_guards(product.input(0)), "Softmax");
    if (!softmax) return nullptr;
    const int64_t axis = softmax->int_attribute("axis", -1);
    if (axis != -1 && axis != 3) return nullptr;
    auto s = match_scores(skip_float_casts(softmax->input(0)));
    if (!s || !rank4(s->q) || !rank4(s->k) || !rank4(product.input(1)) || s->scale <= 0) return nullptr;
    Value *k = unrepeated(s->k), *v = unrepeated(product.input(1));
    if (!k->shape || !v->shape || (*k->shape)[1] != (*v->shape)[1]) {
      k = s->k;
      v = product.input(1);
    }
    const DType dtype = product.output(0)->dtype;
    if (s->q->dtype != dtype || k->dtype != dtype || v->dtype != dtype) return nullptr;
    Attributes attributes = {{"scale", static_cast<float>(s->scale)}};
    if (s->softcap > 0) attributes["softcap"] = static_cast<float>(s->softcap);
    std::vector<Value*> inputs = {s->q, k, v};
    if (s->mask) inputs.push_back(as_bool_mask(s->mask));
    return add_typed(graph, "Attention", inputs, std::move(attributes));
  });
}

}  // namespace decant::passes
