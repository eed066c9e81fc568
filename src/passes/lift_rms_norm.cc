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

}  // namespace

Result<bool> lift_rms_norm(Graph& graph) {
  return rewrite(graph, [&](Node& node) -> Result<Value*> {
    if (!node.is("Mul")) return nullptr;
    for (size_t side = 0; side < 2; ++side) {
      Value* weight = node.input(side);
      const auto n = normalised(skip_float_casts(node.input(1 - side)));
      if (!n || !weight->shape || weight->shape->size() != 1) continue;
      Value* x = skip_float_casts(n->x);
      if (!x->shape || x->shape->empty() || x->dtype != node.output(0)->dtype) continue;
      return add_typed(graph, "RMSNormalization", {x, weight},
                       {{"axis", int64_t{-1}}, {"epsilon", n->epsilon}});
    }
    return nullptr;
  });
}

}  // namespace decant::passes
