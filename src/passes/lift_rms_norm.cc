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
  bool changed = false;
  const size_t count = graph.nodes().size();
  for (size_t i = 0; i < count; ++i) {
    Node* node = graph.nodes()[i].get();
    if (!node || !node->is("Mul")) continue;
    for (size_t side = 0; side < 2; ++side) {
      Value* weight = node->input(side);
      const auto n = normalised(skip_float_casts(node->input(1 - side)));
      if (!n || !weight->shape || weight->shape->size() != 1) continue;
      Value* x = skip_float_casts(n->x);
      if (!x->shape || x->shape->empty() || x->dtype != node->output(0)->dtype) continue;
      DECANT_ASSIGN(Node * norm, add_typed(graph, "RMSNormalization", {x, weight},
                                           {{"axis", int64_t{-1}}, {"epsilon", n->epsilon}}));
      replace(graph, node->output(0), norm->output(0));
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

Result<bool> lift_swiglu(Graph& graph) {
  bool changed = false;
  for (int round = 0; round < 2; ++round) {
    const size_t count = graph.nodes().size();
    for (size_t i = 0; i < count; ++i) {
      Node* node = graph.nodes()[i].get();
      if (!node || !node->is("Mul")) continue;
      for (size_t side = 0; side < 2; ++side) {
        Value *a = node->input(side), *b = node->input(1 - side);
        Node* lifted = nullptr;
        Node* sigmoid = producer(a, "Sigmoid");
        Node* swish = producer(a, "Swish");
        if (round == 0 && sigmoid && sigmoid->input(0) == b) {
          DECANT_ASSIGN(lifted, add_typed(graph, "Swish", {b}));
        } else if (round == 1 && swish && a->users().size() == 1 && a->shape && b->shape &&
                   *a->shape == *b->shape) {
          DECANT_ASSIGN(lifted, add_typed(graph, "SwiGLU", {swish->input(0), b}));
        }
        if (!lifted) continue;
        replace(graph, node->output(0), lifted->output(0));
        changed = true;
        break;
      }
    }
  }
  if (changed) {
    graph.remove_dead();
    DECANT_RETURN_IF_ERROR(graph.sort());
  }
  return changed;
}

}  // namespace decant::passes
