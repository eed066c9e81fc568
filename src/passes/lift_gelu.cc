#include <cmath>
#include <vector>

#include "passes/match.h"
#include "passes/passes.h"

namespace decant::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::Value;

constexpr double kInverseSqrt2 = 0.70710678118654752;
constexpr double kSqrt2OverPi = 0.79788456080286536;
constexpr double kCubic = 0.044715;

/// A product of numbers and values.
struct Product {
  double number = 1.0;
  std::vector<Value*> factors;
};

/// Multiplies out Mul, Div by numbers and small powers below `value`; inner ones only where nothing else
/// reads them, unless `shared`.
void multiply_out(Value* value, bool shared, int depth, Product& product) {
  Node* node = value->producer;
  if (node && depth < 5 && (depth == 0 || shared || value->users().size() == 1)) {
    if (node->is("Mul")) {
      for (Value* side : {node->input(0), node->input(1)}) {
        if (const auto n = scalar(side)) {
          product.number *= *n;
        } else {
          multiply_out(side, shared, depth + 1, product);
        }
      }
      return;
    }
    const auto n = node->is("Div") || node->is("Pow") ? scalar(node->input(1)) : std::nullopt;
    if (n && node->is("Div") && *n != 0.0) {
      product.number /= *n;
      multiply_out(node->input(0), shared, depth + 1, product);
      return;
    }
    if (n && node->is("Pow") && (*n == 2.0 || *n == 3.0)) {
      for (int i = 0; i < static_cast<int>(*n); ++i) multiply_out(node->input(0), shared, depth + 1, product);
      return;
    }
  }
  product.factors.push_back(value);
}

Product product_of(Value* value, bool shared = true) {
  Product p;
  multiply_out(value, shared, 0, p);
  return p;
}

/// Numbers of half-precision graphs were rounded.
bool near(double a, double b, DType dtype) {
  return std::abs(a - b) <=
         std::abs(b) * (dtype == DType::kFloat32 || dtype == DType::kFloat64 ? 2e-6 : 4e-3);
}

/// The v of v + number.
Value* plus(Value* value, double number, DType dtype) {
  Node* add = producer(value, "Add");
  const auto side = add ? scalar_side(add) : std::nullopt;
  return side && near(side->number, number, dtype) ? side->rest : nullptr;
}

/// Whether value = number · x^power.
bool is_power(Value* value, double number, Value* x, size_t power, DType dtype) {
  const Product p = product_of(value);
  if (p.factors.size() != power || !near(p.number, number, dtype)) return false;
  for (const Value* f : p.factors) {
    if (f != x) return false;
  }
  return true;
}

/// Whether u = sqrt(2/π) · (x + 0.044715 · x³).
bool is_tanh_argument(Value* u, Value* x, DType dtype) {
  const Product p = product_of(u);
  if (!near(p.number, kSqrt2OverPi, dtype)) return false;
  if (p.factors.size() == 1) {
    Node* add = producer(p.factors[0], "Add");
    Value* cubic = add ? other_input(add, x) : nullptr;
    return cubic && is_power(cubic, kCubic, x, 3, dtype);
  }
  if (p.factors.size() != 2) return false;
  for (size_t side = 0; side < 2; ++side) {
    if (p.factors[side] != x) continue;
    Value* square = plus(p.factors[1 - side], 1.0, dtype);
    if (square && is_power(square, kCubic, x, 2, dtype)) return true;
  }
  return false;
}

}  // namespace

Result<bool> lift_gelu(Graph& graph) {
  return rewrite(graph, [&](Node& node) -> Result<Value*> {
    if (!node.is("Mul") && !node.is("Div")) return nullptr;
    Value* y = node.output(0);
    if (!is_float(y->dtype)) return nullptr;
    const Product p = product_of(y, false);
    if (p.factors.size() != 2 || !near(p.number, 0.5, y->dtype)) return nullptr;
    for (size_t side = 0; side < 2; ++side) {
      Value* x = p.factors[side];
      Value* gate = plus(p.factors[1 - side], 1.0, y->dtype);
      if (!gate || x->dtype != y->dtype || !x->shape || x->shape != y->shape) continue;
      Value* u = gate->producer ? gate->producer->input(0) : nullptr;
      if (producer(gate, "Erf") && is_power(u, kInverseSqrt2, x, 1, y->dtype))
        return add_typed(graph, "Gelu", {x}, {{"approximate", std::string("none")}});
      if (producer(gate, "Tanh") && is_tanh_argument(u, x, y->dtype))
        return add_typed(graph, "Gelu", {x}, {{"approximate", std::string("tanh")}});
    }
    return nullptr;
  });
}

}  // namespace decant::passes
