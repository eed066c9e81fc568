#include "ir/op.h"

#include <algorithm>
#include <map>

#include "ir/control_flow.h"
#include "ir/custom_op.h"

namespace decant::ir {

#define X(id) OpDef decant_op_##id();
#include "op_list.inc"
#undef X

namespace {

using Key = std::pair<std::string_view, std::string_view>;

const std::map<Key, OpDef>& table() {
  static const std::map<Key, OpDef> ops = [] {
    std::map<Key, OpDef> map;
    auto add = [&](const OpDef& op) { map.emplace(Key(op.domain, op.name), op); };
#define X(id) add(decant_op_##id());
#include "op_list.inc"
#undef X
    (void)add;
    return map;
  }();
  return ops;
}

std::string describe_inputs(const Node& node) {
  std::string out;
  for (const Value* v : node.inputs()) {
    if (!out.empty()) out += ", ";
    if (!v) {
      out += "_";
      continue;
    }
    out += std::string(to_string(v->dtype)) + (v->shape ? to_string(*v->shape) : "[...]");
  }
  return out;
}

}  // namespace

const OpDef* find_op(std::string_view domain, std::string_view name) {
  auto it = table().find(Key(domain, name));
  return it == table().end() ? nullptr : &it->second;
}

std::vector<const OpDef*> all_ops() {
  std::vector<const OpDef*> out;
  for (const auto& [key, op] : table()) out.push_back(&op);
  return out;
}

std::optional<std::vector<Dim>> InferContext::elements(size_t i) const {
  const Value* v = node_.input(i);
  if (!v) return std::nullopt;
  if (v->elements) return v->elements;
  constexpr int64_t kMaxElements = 256;
  const ConstantPtr& c = v->constant;
  if (!c || !c->in_memory() || !(is_integer(c->dtype()) || c->dtype() == DType::kBool) ||
      c->dims().size() > 1 || c->elements() > kMaxElements) {
    return std::nullopt;
  }
  const std::vector<int64_t> ints = c->tensor().to_ints();
  return std::vector<Dim>(ints.begin(), ints.end());
}

std::optional<std::vector<int64_t>> InferContext::constant_ints(size_t i) const {
  const auto dims = elements(i);
  return dims ? constant_shape(*dims) : std::nullopt;
}

void InferContext::set_output(size_t i, DType dtype, std::optional<Shape> shape, ValueKind kind) {
  Value* v = node_.output(i);
  if (!v) return;
  v->kind = kind;
  v->dtype = dtype;
  v->shape = std::move(shape);
  v->elements.reset();
}

void InferContext::set_elements(size_t i, std::vector<Dim> elements) {
  if (Value* v = node_.output(i)) v->elements = std::move(elements);
}

Shape InferContext::fresh_shape(size_t rank, std::string_view hint) {
  Shape shape;
  for (size_t i = 0; i < rank; ++i) shape.push_back(fresh_symbol(hint));
  return shape;
}

Status InferContext::error(std::string_view what) const {
  return invalid_model(node_.describe() + " with inputs (" + describe_inputs(node_) +
                       "): " + std::string(what));
}

Status infer_node(Graph& graph, Node& node) {
  if (node.custom) {
    InferContext context(graph, node);
    return node.custom->infer(context);
  }
  const OpDef* op = find_op(node.domain(), node.op());
  if (!op) return unsupported(node.describe() + ": unknown operator");
  const auto count = static_cast<int>(node.inputs().size());
  InferContext context(graph, node);
  if (count < op->min_inputs || (op->max_inputs >= 0 && count > op->max_inputs)) {
    return context.error("takes " + std::to_string(op->min_inputs) + " to " + std::to_string(op->max_inputs) +
                         " inputs");
  }
  for (int i = 0; i < op->min_inputs; ++i) {
    if (!node.input(static_cast<size_t>(i)))
      return context.error("required input " + std::to_string(i) + " is left out");
  }
  const auto outputs = static_cast<int>(node.outputs().size());
  if (op->max_outputs >= 0 && outputs > op->max_outputs) {
    return context.error("has " + std::to_string(outputs) + " outputs, at most " +
                         std::to_string(op->max_outputs) + " exist");
  }
  for (const Value* v : node.inputs()) {
    if (v && v->dtype > DType::kBool && !op->any_dtype) {
      return unsupported(node.describe() + ": not implemented for " + std::string(to_string(v->dtype)));
    }
  }
  if (!op->eval_data && !is_control_flow(node)) {
    for (const Value* v : node.inputs()) {
      if (v && v->kind != ValueKind::kTensor) {
        return context.error("'" + v->name + "' is a value of kind " + std::string(to_string(v->kind)) +
                             ", only tensors are taken");
      }
    }
  }
  return op->infer(context);
}

namespace {

void collect_unknown(const Graph& graph, std::map<std::string, std::string>& unknown) {
  for (const auto& node : graph.nodes()) {
    if (!node) continue;
    if (!node->custom && !find_op(node->domain(), node->op())) {
      const std::string op = (node->domain().empty() ? "" : node->domain() + "::") + node->op();
      std::string& nodes = unknown[op];
      if (nodes.size() < 200) nodes += (nodes.empty() ? "'" : ", '") + node->name + "'";
    }
    for (const auto& [key, attribute] : node->attributes) {
      if (const auto* sub = std::get_if<std::shared_ptr<Graph>>(&attribute); sub && *sub)
        collect_unknown(**sub, unknown);
    }
  }
}

Status infer_scope(Graph& graph) {
  for (const auto& node : graph.nodes()) {
    if (node) DECANT_RETURN_IF_ERROR(infer_node(graph, *node));
  }
  return ok_status();
}

}  // namespace

Status infer_subgraph(Graph& outer, Graph& body) {
  body.nest_in(outer);
  if (body.depth() > 64) return invalid_model("graph '" + body.name + "': sub-graphs nested over 64 deep");
  return infer_scope(body);
}

Status infer_types(Graph& graph) {
  std::map<std::string, std::string> unknown;
  collect_unknown(graph, unknown);
  if (!unknown.empty()) {
    std::string message = "operators without an implementation:";
    for (const auto& [op, nodes] : unknown) message += "\n  " + op + " at " + nodes;
    return unsupported(std::move(message));
  }
  return infer_scope(graph);
}

}  // namespace decant::ir
