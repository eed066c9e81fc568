#include <algorithm>
#include <string>
#include <unordered_set>

#include "ir/ops/elements.h"
#include "passes/match.h"
#include "passes/passes.h"

namespace decant::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::Value;

/// Folding copies; larger constants (weights) are handled where they are used.
constexpr int64_t kMaxFoldedBytes = int64_t{4} << 20;

/// The value as a constant of its known elements, or null.
ir::ConstantPtr constant_of_elements(const Value& v) {
  if (!v.elements || v.dtype != DType::kInt64 || !v.shape || v.shape->size() > 1) return nullptr;
  const auto numbers = ir::constant_shape(*v.elements);
  if (!numbers) return nullptr;
  ir::Tensor t = ir::Tensor::vector(*numbers);
  if (v.shape->empty()) {
    if (numbers->size() != 1) return nullptr;
    t = t.reshaped({});
  }
  return ir::Constant::from_tensor(t);
}

bool small_constant_inputs(const Node& node) {
  int64_t bytes = 0;
  for (const Value* v : node.inputs()) {
    if (!v) continue;
    if (!v->constant || !v->constant->in_memory()) return false;
    const int64_t strings = v->dtype == DType::kString ? v->constant->elements() : 0;
    bytes += static_cast<int64_t>(v->constant->bytes()) + strings * static_cast<int64_t>(sizeof(std::string));
  }
  if (bytes > kMaxFoldedBytes) return false;
  for (const Value* v : node.outputs()) {
    if (!v) continue;
    const auto dims = v->shape ? ir::constant_shape(*v->shape) : std::nullopt;
    if (!dims) return v->shape.has_value() && bytes <= 4096;  // a data-dependent length over little data
    int64_t n = v->dtype == DType::kString ? static_cast<int64_t>(sizeof(std::string))
                                           : std::max<int64_t>(1, static_cast<int64_t>(size_of(v->dtype)));
    for (int64_t d : *dims) {
      if (d < 0 || __builtin_mul_overflow(n, d, &n) || n > kMaxFoldedBytes) return false;
    }
  }
  return true;
}

void become_constant(Graph& graph, Value* v, ir::ConstantPtr constant) {
  Value* folded = graph.add_constant(graph.unique_name(v->name + "_folded"), std::move(constant));
  graph.replace_all_uses(v, folded);
}

}  // namespace

Result<bool> fold_constants(Graph& graph) {
  bool changed = false;
  const size_t count = graph.nodes().size();
  for (size_t i = 0; i < count; ++i) {
    Node* node = graph.nodes()[i].get();
    if (!node) continue;
    bool used = false;
    for (Value* v : node->outputs()) used = used || (v && (!v->users().empty() || graph.is_output(v)));
    if (!used) continue;
    bool from_elements = true;
    for (Value* v : node->outputs()) {
      if (!v || graph.is_output(v)) {
        from_elements = false;
        continue;
      }
      ir::ConstantPtr c = constant_of_elements(*v);
      from_elements = from_elements && c;
      if (c && !v->users().empty()) {
        become_constant(graph, v, std::move(c));
        changed = true;
      }
    }
    if (node->custom) continue;
    const ir::OpDef* op = ir::find_op(node->domain(), node->op());
    if (from_elements || !op || !op->eval || op->random || node->inputs().empty() ||
        !small_constant_inputs(*node))
      continue;
    std::vector<ir::Tensor> held;
    held.reserve(node->inputs().size());
    std::vector<const ir::Tensor*> inputs;
    for (const Value* v : node->inputs()) {
      if (v) held.push_back(v->constant->tensor());
      inputs.push_back(v ? &held.back() : nullptr);
    }
    auto results = ir::evaluate_node(*node, inputs);
    if (!results.ok()) continue;  // the run reports it, if it gets there
    for (size_t o = 0; o < node->outputs().size() && o < results->size(); ++o) {
      Value* v = node->outputs()[o];
      if (!v || graph.is_output(v)) continue;
      if (static_cast<int64_t>((*results)[o].bytes()) > kMaxFoldedBytes) continue;
      become_constant(graph, v, ir::Constant::from_tensor((*results)[o]));
      changed = true;
    }
  }
  return changed;
}

namespace {

/// Inputs of these operators may well be negative numbers, and dims are not: axes, steps and diagonals.
bool is_axis_like(const Node& node, const Value* v) {
  const auto at = [&](size_t i) { return node.input(i) == v; };
  if (node.op().starts_with("Reduce") || node.is("Squeeze") || node.is("Unsqueeze") || node.is("CumSum") ||
      node.is("CumProd") || node.is("Trilu") || node.is("DFT")) {
    return !at(0);
  }
  if (ir::has_subgraphs(node)) return !(node.is("Loop") && at(0));
  if (node.is("Slice")) return at(1) || at(2) || at(3) || at(4);
  if (node.is("Cast"))
    return is_float(ir::dtype_from_onnx_code(node.int_attribute("to", 0)));  // to calculate with
  return node.is("Range") && at(2);
}

}  // namespace

Result<bool> name_scalar_inputs(Graph& graph) {
  bool changed = false;
  for (Value* v : graph.inputs()) {
    if (v->elements || !(v->dtype == DType::kInt64 || v->dtype == DType::kInt32) || !v->shape) continue;
    if (!v->shape->empty() && !(v->shape->size() == 1 && (*v->shape)[0] == ir::Dim(1))) continue;
    const auto& users = v->users();
    if (std::any_of(users.begin(), users.end(), [v](const Node* user) { return is_axis_like(*user, v); }))
      continue;
    v->elements = std::vector<ir::Dim>{ir::Dim::symbol("value(" + v->name + ")")};
    changed = true;
  }
  return changed;
}

}  // namespace decant::passes
