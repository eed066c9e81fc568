#include <algorithm>

#include "passes/match.h"
#include "passes/passes.h"

namespace decant::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::Value;

struct Normalised {
  Value* x;  ///< before any cast to f32
  float epsilon;
};

bool reduces_last_axis(const Node& mean) {
  if (mean.int_attribute("keepdims", 1) == 0) return false;
  const auto axes = ints(mean.input(1));
  const Value* x = mean.input(0);
  if (!axes || axes->size() != 1 || !x->shape) return false;
  return (*axes)[0] == -1 || (*axes)[0] == static_cast<int64_t>(x->shape->size()) - 1;
}

/// The x of x² (Pow by 2 or Mul with itself).
Value* squared(Value* value) {
  if (Node* pow = producer(value, "Pow")) {
    const auto exponent = scalar(pow->input(1));
    return exponent && *exponent == 2.0 ? pow->input(0) : nullptr;
  }
  if (Node* mul = producer(value, "Mul")) return mul->input(0) == mul->input(1) ? mul->input(0) : nullptr;
  return nullptr;
}

/// sqrt(mean(x²) + ε) of the value, and ε.
std::optional<Normalised> root_mean_square(Value* value) {
  Node* sqrt = producer(value, "Sqrt");
  Node* add = sqrt ? producer(sqrt->input(0), "Add") : nullptr;
  const auto side = add ? scalar_side(add) : std::nullopt;
  Node* mean = side ? producer(side->rest, "ReduceMean") : nullptr;
  if (!mean || !reduces_last_axis(*mean)) return std::nullopt;
  Value* x = squared(mean->input(0));
  if (!x) return std::nullopt;
  return Normalised{x, static_cast<float>(side->number)};
}

/// x · 1/rms or x / rms.
std::optional<Normalised> normalised(Value* value) {
  if (Node* div = producer(value, "Div")) {
    auto n = root_mean_square(div->input(1));
    return n && n->x == div->input(0) ? n : std::nullopt;
  }
  Node* mul = producer(value, "Mul");
  if (!mul) return std::nullopt;
  for (size_t side = 0; side < 2; ++side) {
    Value* inverse = mul->input(side);
    Value* root = nullptr;
    if (Node* reciprocal = producer(inverse, "Reciprocal")) root = reciprocal->input(0);
    if (Node* div = producer(inverse, "Div")) {
      const auto one = scalar(div->input(0));
      if (one && *one == 1.0) root = div->input(1);
    }
    if (!root) continue;
    auto n = root_mean_square(root);
    if (n && n->x == mul->input(1 - side)) return n;
  }
  return std::nullopt;
}

/// The x of x - mean(x) over the last axis.
Value* uncentred(Value* value) {
  Node* sub = producer(value, "Sub");
  Node* mean = sub ? producer(sub->input(1), "ReduceMean") : nullptr;
  return mean && reduces_last_axis(*mean) &&
                 skip_float_casts(mean->input(0)) == skip_float_casts(sub->input(0))
             ? sub->input(0)
             : nullptr;
}

/// RMSNormalization, or LayerNormalization when what is normalised was centred before.
Result<Value*> norm_of(Graph& graph, const Normalised& n, Value* weight, DType dtype) {
  Value* centred = uncentred(n.x);
  Value* x = centred ? centred : n.x;
  if (Value* narrow = skip_float_casts(x); narrow->dtype == dtype) x = narrow;
  if (!x->shape || x->shape->empty() || x->dtype != dtype || weight->dtype != dtype) return nullptr;
  if ((*weight->shape)[0] != x->shape->back()) return nullptr;
  return add_typed(graph, centred ? "LayerNormalization" : "RMSNormalization", {x, weight},
                   {{"axis", int64_t{-1}}, {"epsilon", n.epsilon}});
}

/// The norm of x · weight / rms(x).
Result<Value*> weighted(Graph& graph, Node& node) {
  if (!node.is("Mul")) return nullptr;
  for (size_t side = 0; side < 2; ++side) {
    Value* weight = node.input(side);
    const auto n = normalised(skip_float_casts(node.input(1 - side)));
    if (!n || !weight->shape || weight->shape->size() != 1) continue;
    DECANT_ASSIGN(Value * norm, norm_of(graph, *n, weight, node.output(0)->dtype));
    if (norm) return norm;
  }
  return nullptr;
}

/// The norm of x / rms(x), with a weight of ones.
Result<Value*> unweighted(Graph& graph, Node& node) {
  if (!node.is("Mul") && !node.is("Div")) return nullptr;
  Value* y = node.output(0);
  const auto n = normalised(y);
  const auto width =
      n && n->x->shape && !n->x->shape->empty() ? n->x->shape->back().as_constant() : std::nullopt;
  if (!width || *width <= 0 || *width > 1 << 20) return nullptr;
  DECANT_ASSIGN(ir::Tensor ones, ir::Tensor::allocate(DType::kFloat32, {*width}));
  std::fill_n(ones.mutable_data_as<float>(), *width, 1.0f);
  Value* weight = graph.add_constant(graph.unique_name("ones"),
                                     ir::cast_constant(ir::Constant::from_tensor(ones), y->dtype));
  return norm_of(graph, *n, weight, y->dtype);
}

/// The LayerNormalization with the bias that is added to it.
Result<Value*> biased(Graph& graph, Node& node) {
  if (!node.is("Add")) return nullptr;
  for (size_t side = 0; side < 2; ++side) {
    Node* norm = producer(node.input(side), "LayerNormalization");
    Value* bias = node.input(1 - side);
    if (!norm || norm->input(2) || !bias->constant || !bias->shape || bias->shape->size() != 1 ||
        !norm->input(1)->shape || *bias->shape != *norm->input(1)->shape ||
        bias->dtype != norm->input(1)->dtype)
      continue;
    return add_typed(graph, "LayerNormalization", {norm->input(0), norm->input(1), bias}, norm->attributes);
  }
  return nullptr;
}

}  // namespace

Result<bool> lift_norms(Graph& graph) {
  bool changed = false;
  for (const auto step : {&weighted, &unweighted, &biased}) {
    DECANT_ASSIGN(const bool here, rewrite(graph, [&](Node& node) { return step(graph, node); }));
    changed = changed || here;
  }
  return changed;
}

}  // namespace decant::passes
