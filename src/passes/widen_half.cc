#include <set>

#include "passes/match.h"
#include "passes/passes.h"

namespace decant::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::Value;

bool is_half(DType t) { return t == DType::kFloat16 || t == DType::kBFloat16; }

/// ONNX's number for float32 in Cast's `to`.
constexpr int64_t kOnnxFloat = 1;

/// Operands that kernels read in half precision: weights of products, tables of gathers, key-value caches.
bool reads_half(const Node& node, size_t input, const std::set<const Value*>& caches) {
  const Value* v = node.input(input);
  if (v->constant) {
    if (input == 1 && (node.is("MatMul") || node.op() == "FusedMatMul") && v->constant->dims().size() == 2)
      return true;
    return input == 0 && node.is("Gather") && v->constant->dims().size() > 1;
  }
  if (!caches.count(v)) return false;
  return (node.is("TensorScatter") && input == 0) || (node.is("Attention") && (input == 1 || input == 2));
}

}  // namespace

Result<bool> widen_half(Graph& graph) {
  bool any = false;
  for (const auto& v : graph.values()) any = any || is_half(v->dtype);
  if (!any) return false;
  // Sub-graphs read values of this graph in the type they were written for.
  for (const auto& node : graph.nodes()) {
    if (ir::has_subgraphs(*node)) return false;
  }

  std::set<const Value*> caches;
  for (const ir::State& s : graph.states) {
    if (s.kind != ir::State::Kind::kKeyValue || s.form != ir::State::Form::kFixed ||
        !producer(s.output, "TensorScatter"))
      continue;
    caches.insert(s.input);
    caches.insert(s.output);
  }
  // Inputs come in as stored and are widened where arithmetic reads them.
  std::map<Value*, Value*> wide;
  auto widened = [&](Value* v) -> Result<Value*> {
    if (auto it = wide.find(v); it != wide.end()) return it->second;
    Value* w = nullptr;
    if (v->constant) {
      w = graph.add_constant(graph.unique_name(v->name + "_f32"),
                             ir::cast_constant(v->constant, DType::kFloat32));
    } else {
      Node* cast = graph.add_node("Cast", {v});
      cast->attributes["to"] = kOnnxFloat;
      w = cast->output(0);
      w->dtype = DType::kFloat32;
      w->shape = v->shape;
    }
    wide[v] = w;
    return w;
  };
  const std::set<const Value*> inputs(graph.inputs().begin(), graph.inputs().end());
  std::set<const Node*> narrowing;  // casts that stay in half precision: into caches
  const size_t count = graph.nodes().size();
  for (size_t i = 0; i < count; ++i) {
    Node* node = graph.nodes()[i].get();
    for (size_t n = 0; n < node->inputs().size(); ++n) {
      Value* v = node->input(n);
      if (!v || !is_half(v->dtype) || reads_half(*node, n, caches)) continue;
      if (!v->constant && !inputs.count(v)) continue;
      DECANT_ASSIGN(Value * w, widened(v));
      node->set_input(n, w);
    }
    if (node->is("MatMul") && node->input(1)->constant && is_half(node->input(1)->dtype)) {
      Node* product = graph.add_node("FusedMatMul", node->inputs(), 1, "", "com.microsoft");
      product->output(0)->shape = node->output(0)->shape;
      product->output(0)->dtype = DType::kFloat32;
      replace(graph, node->output(0), product->output(0));
      continue;
    }
    if (node->is("TensorScatter") && caches.count(node->input(0))) {
      const int64_t to = node->input(0)->dtype == DType::kFloat16 ? 10 : 16;
      Node* cast = graph.add_node("Cast", {node->input(1)});
      cast->attributes["to"] = to;
      cast->output(0)->dtype = node->input(0)->dtype;
      cast->output(0)->shape = node->input(1)->shape;
      node->set_input(1, cast->output(0));
      narrowing.insert(cast);
      continue;
    }
    if (node->is("Cast") && node->output(0) && is_half(node->output(0)->dtype))
      node->attributes["to"] = kOnnxFloat;
  }
  // Outputs leave in their own dtype.
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    Value* v = graph.outputs()[i];
    if (!is_half(v->dtype) || caches.count(v) || !v->producer) continue;
    Node* cast = graph.add_node("Cast", {v});
    cast->attributes["to"] = static_cast<int64_t>(v->dtype == DType::kFloat16 ? 10 : 16);
    std::string name = std::move(v->name);
    v->name = graph.unique_name(name + "_f32");
    cast->output(0)->name = std::move(name);
    for (ir::State& s : graph.states) {
      if (s.output == v) s.output = cast->output(0);
    }
    graph.set_output(i, cast->output(0));
  }
  graph.remove_dead();
  DECANT_RETURN_IF_ERROR(graph.sort());
  // Re-type in order; what still comes out in half precision (rows of a table) is widened right there.
  const size_t sorted = graph.nodes().size();
  for (size_t i = 0; i < sorted; ++i) {
    Node* node = graph.nodes()[i].get();
    DECANT_RETURN_IF_ERROR(ir::infer_node(graph, *node));
    if (narrowing.count(node)) continue;
    for (Value* out : node->outputs()) {
      if (!out || !is_half(out->dtype) || caches.count(out) || graph.is_output(out)) continue;
      DECANT_ASSIGN(Value * cast, add_typed(graph, "Cast", {out}, {{"to", kOnnxFloat}}));
      graph.replace_all_uses(out, cast);
      cast->producer->set_input(0, out);
    }
  }
  DECANT_RETURN_IF_ERROR(graph.sort());
  return true;
}

}  // namespace decant::passes
