#include "formats/onnx/graph_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "formats/onnx/attribute.h"
#include "ir/ops/elements.h"

namespace decant::onnx {
namespace {

constexpr int kMaxDepth = 64;
constexpr uint64_t kMaxInlinedNodes = 1'000'000;

std::string function_key(std::string_view domain, std::string_view name, std::string_view overload) {
  return fmt::format("{}:{}:{}", domain, name, overload);
}

std::string describe(const NodeMessage& node) {
  return fmt::format("node '{}' ({}{}{})", node.name, node.domain, node.domain.empty() ? "" : "::", node.op);
}

void trim(std::vector<std::string_view>& names) {
  while (!names.empty() && names.back().empty()) names.pop_back();
}

std::optional<ir::ValueKind> value_kind(std::string_view name) {
  for (const ir::ValueKind kind : {ir::ValueKind::kTensor, ir::ValueKind::kSequence, ir::ValueKind::kOptional,
                                   ir::ValueKind::kOptionalSequence}) {
    if (to_string(kind) == name) return kind;
  }
  return std::nullopt;
}

bool is_constant_node(const NodeMessage& node) { return node.domain.empty() && node.op == "Constant"; }

}  // namespace

int64_t GraphBuilder::opset_of(const ir::Node* node) const {
  auto it = opsets_.find(node);
  if (it != opsets_.end()) return it->second;
  auto model = model_.opset_imports.find("");
  return model == model_.opset_imports.end() ? 0 : model->second;
}

ir::Value* GraphBuilder::find(const Scope& scope, std::string_view name) {
  for (const Scope* s = &scope; s; s = s->parent) {
    if (auto it = s->values.find(name); it != s->values.end()) return it->second;
  }
  return nullptr;
}

bool GraphBuilder::is_left_out(const Scope& scope, std::string_view name) {
  for (const Scope* s = &scope; s; s = s->parent) {
    if (auto it = s->values.find(name); it != s->values.end()) return it->second == nullptr;
  }
  return false;
}

Status GraphBuilder::define(Scope& scope, std::string_view name, ir::Value* value, std::string_view where) {
  if (!scope.values.emplace(name, value).second) {
    return invalid_model(fmt::format("{}: value '{}' is defined twice", where, name));
  }
  return ok_status();
}

const FunctionMessage* GraphBuilder::function_of(const NodeMessage& node) const {
  auto it = functions_.find(function_key(node.domain, node.op, node.overload));
  return it == functions_.end() ? nullptr : &it->second;
}

Status GraphBuilder::load_functions() {
  for (const Bytes bytes : model_.functions) {
    DECANT_ASSIGN(FunctionMessage f, parse_function(context_, bytes));
    std::string key = function_key(f.domain, f.name, f.overload);
    const std::string name(f.name);
    if (!functions_.emplace(std::move(key), std::move(f)).second) {
      return invalid_model(fmt::format("function '{}' is defined twice", name));
    }
  }
  return ok_status();
}

Result<uint64_t> GraphBuilder::inlined_size(const std::vector<NodeMessage>& nodes, int depth) {
  if (depth > kMaxDepth)
    return invalid_model(fmt::format("functions and sub-graphs nested over {} deep", kMaxDepth));
  uint64_t total = 0;
  for (const NodeMessage& node : nodes) {
    total += 1;
    for (const AttributeMessage& a : node.attributes) {
      if (a.graph.empty()) continue;
      DECANT_ASSIGN(const GraphMessage sub, parse_graph(context_, a.graph));
      DECANT_ASSIGN(const uint64_t size, inlined_size(sub.nodes, depth + 1));
      total += size;
    }
    if (const FunctionMessage* f = function_of(node)) {
      auto known = sizes_.find(f);
      if (known == sizes_.end()) {
        if (!measuring_.insert(f).second) {
          return invalid_model(fmt::format("{}: function '{}' calls itself", describe(node), f->name));
        }
        DECANT_ASSIGN(const uint64_t size, inlined_size(f->nodes, depth + 1));
        measuring_.erase(f);
        known = sizes_.emplace(f, size).first;
      }
      total += known->second;
    }
    if (total > kMaxInlinedNodes) {
      return invalid_model(
          fmt::format("{}: over {} nodes after inlining functions", describe(node), kMaxInlinedNodes));
    }
  }
  return total;
}

Result<std::unique_ptr<ir::Graph>> GraphBuilder::build() {
  DECANT_RETURN_IF_ERROR(load_functions());
  DECANT_ASSIGN(const GraphMessage message, parse_graph(context_, *model_.graph));
  if (!functions_.empty()) {
    for (const auto& [key, f] : functions_) {
      if (auto size = inlined_size(f.nodes, 1); !size.ok()) return std::move(size).status();
      measuring_.clear();
    }
    if (auto size = inlined_size(message.nodes, 0); !size.ok()) return std::move(size).status();
  }
  auto graph = std::make_unique<ir::Graph>();
  main_ = graph.get();
  graph->name = message.name;
  Scope scope;
  DECANT_RETURN_IF_ERROR(add_initializers(*graph, message, scope));
  DECANT_RETURN_IF_ERROR(add_inputs(*graph, message, scope, true));
  Origin origin;
  origin.opset = opset_of(nullptr);
  DECANT_RETURN_IF_ERROR(add_nodes(*graph, message.nodes, scope, origin, 0));
  for (const ValueMessage& v : message.outputs) {
    ir::Value* value = find(scope, v.name);
    if (!value) return invalid_model(fmt::format("graph output '{}' is not produced by any node", v.name));
    graph->add_output(value);
  }
  if (graph->outputs().empty()) return invalid_model("the graph has no outputs");
  DECANT_RETURN_IF_ERROR(graph->sort());
  return graph;
}

Status GraphBuilder::add_initializers(ir::Graph& graph, const GraphMessage& message, Scope& scope) {
  if (message.sparse_initializers) {
    return unsupported(fmt::format("graph '{}': sparse initializers are not supported", message.name));
  }
  for (const Bytes bytes : message.initializers) {
    DECANT_ASSIGN(const TensorMessage tensor, parse_tensor(context_, bytes));
    if (tensor.name.empty()) return invalid_model("an initializer without a name");
    DECANT_ASSIGN(ir::ConstantPtr constant, loader_.load(tensor));
    ir::Value* value = graph.add_constant(std::string(tensor.name), std::move(constant));
    DECANT_RETURN_IF_ERROR(define(scope, tensor.name, value, "initializer"));
  }
  return ok_status();
}

Status GraphBuilder::add_inputs(ir::Graph& graph, const GraphMessage& message, Scope& scope, bool is_main) {
  for (const ValueMessage& v : message.inputs) {
    const std::string where = fmt::format("input '{}'", v.name);
    if (v.name.empty()) return invalid_model("a graph input without a name");
    if (auto it = scope.values.find(v.name); it != scope.values.end() && it->second->is_constant()) continue;
    const bool untyped = v.kind.empty() && !is_main;
    const auto kind = value_kind(v.kind);
    if (!untyped && !kind) {
      if (v.kind.empty()) return invalid_model(where + " has no type");
      return unsupported(
          fmt::format("{} is a {}; tensors, sequences and optionals are supported", where, v.kind));
    }
    const DType dtype = ir::dtype_from_onnx_code(v.elem_type);
    if (!untyped && dtype == DType::kUndefined) {
      return unsupported(fmt::format("{} has elements of {}, which are not supported", where,
                                     element_type_name(v.elem_type)));
    }
    std::optional<ir::Shape> shape;
    if (v.has_shape) {
      shape.emplace();
      for (const ValueMessage::Axis& axis : v.shape) {
        if (axis.value && *axis.value >= 0) {
          shape->push_back(ir::Dim(*axis.value));
        } else if (axis.value || axis.label.empty() || axis.label == "?") {
          shape->push_back(main_->fresh_symbol(fmt::format("{}_{}", v.name, shape->size())));
        } else {
          shape->push_back(ir::Dim::parse(std::string(axis.label)));
        }
        const auto fixed = shape->back().as_constant();
        if (fixed && *fixed < 0) return invalid_model(where + " has a negative dim");
      }
    }
    // The tensors of a sequence may differ in dims that the file leaves open.
    if (kind && ir::is_sequence(*kind) && shape && !ir::constant_shape(*shape)) shape.reset();
    ir::Value* value = graph.add_input(std::string(v.name), dtype, std::move(shape));
    value->kind = kind.value_or(ir::ValueKind::kTensor);
    DECANT_RETURN_IF_ERROR(define(scope, v.name, value, where));
  }
  return ok_status();
}

Status GraphBuilder::add_nodes(ir::Graph& graph, const std::vector<NodeMessage>& nodes, Scope& scope,
                               const Origin& origin, int depth) {
  if (depth > kMaxDepth)
    return invalid_model(fmt::format("functions and sub-graphs nested over {} deep", kMaxDepth));
  // Names first, so that the order of nodes in the file does not matter; then what they refer to.
  std::vector<ir::Node*> built(nodes.size(), nullptr);
  std::vector<std::vector<ir::Node*>> results(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    const NodeMessage& message = nodes[i];
    const std::string where = describe(message);
    std::vector<std::string_view> outputs = message.outputs;
    trim(outputs);
    const auto value_name = [&](std::string_view name) {
      return origin.prefix.empty() ? std::string(name) : graph.unique_name(origin.prefix + std::string(name));
    };
    if (is_constant_node(message)) {
      if (outputs.size() != 1) return invalid_model(where + " needs exactly one output");
      auto constant = constant_of(message, origin);
      if (!constant.ok()) return std::move(constant).status().with_context(where);
      DECANT_RETURN_IF_ERROR(
          define(scope, outputs[0], graph.add_constant(value_name(outputs[0]), *std::move(constant)), where));
      continue;
    }
    const FunctionMessage* function = function_of(message);
    if (!function && !model_.opset_imports.contains(std::string(message.domain)) && origin.prefix.empty() &&
        (message.domain.empty() || message.op.empty())) {
      return invalid_model(fmt::format("{}: the model imports no opset of domain 'ai.onnx'", where));
    }
    const std::string node_name = origin.prefix + std::string(message.name);
    const size_t count = function ? function->outputs.size() : 1;
    if (function && outputs.size() > count)
      return invalid_model(where + ": more outputs than the function has");
    for (size_t k = 0; function && k < count; ++k) {
      // A call becomes the function's nodes, and one Identity for each result the caller names.
      const bool wanted = k < outputs.size() && !outputs[k].empty();
      ir::Node* node =
          wanted ? graph.add_node("Identity", {}, 0, fmt::format("{}/result_{}", node_name, k)) : nullptr;
      results[i].push_back(node);
      if (!node) continue;
      ir::Value* value = graph.add_node_output(node, value_name(outputs[k]));
      DECANT_RETURN_IF_ERROR(define(scope, outputs[k], value, where));
    }
    if (function) continue;
    ir::Node* node = graph.add_node(std::string(message.op), {}, 0, node_name, std::string(message.domain));
    built[i] = node;
    if (origin.opset != opset_of(nullptr)) opsets_[node] = origin.opset;
    for (const std::string_view name : outputs) {
      ir::Value* value = graph.add_node_output(node, name.empty() ? "" : value_name(name));
      if (value) DECANT_RETURN_IF_ERROR(define(scope, name, value, where));
    }
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    const NodeMessage& message = nodes[i];
    if (const FunctionMessage* function = function_of(message); function && !is_constant_node(message)) {
      DECANT_RETURN_IF_ERROR(add_call(graph, message, *function, results[i], scope, origin, depth));
      continue;
    }
    ir::Node* node = built[i];
    if (!node) continue;
    std::vector<std::string_view> inputs = message.inputs;
    trim(inputs);
    for (size_t k = 0; k < inputs.size(); ++k) {
      ir::Value* value = nullptr;
      if (!inputs[k].empty()) {
        value = find(scope, inputs[k]);
        if (!value && !is_left_out(scope, inputs[k]))
          return invalid_model(
              fmt::format("{}: input '{}' is not defined anywhere", describe(message), inputs[k]));
      }
      if (value) node->set_input(k, value);
    }
    DECANT_RETURN_IF_ERROR(set_attributes(*node, message, scope, origin, depth));
  }
  return ok_status();
}

Status GraphBuilder::add_call(ir::Graph& graph, const NodeMessage& call, const FunctionMessage& function,
                              const std::vector<ir::Node*>& results, const Scope& scope, const Origin& origin,
                              int depth) {
  const std::string where = describe(call);
  if (call.inputs.size() > function.inputs.size())
    return invalid_model(where + ": more inputs than the function has");
  Scope inner;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.inputs[i].empty()) continue;
    ir::Value* value = find(scope, call.inputs[i]);
    if (!value && is_left_out(scope, call.inputs[i])) continue;
    if (!value)
      return invalid_model(fmt::format("{}: input '{}' is not defined anywhere", where, call.inputs[i]));
    DECANT_RETURN_IF_ERROR(define(inner, function.inputs[i], value, where));
  }
  // What the caller leaves out is left out wherever the body passes it on.
  for (const std::string_view name : function.inputs) inner.values.emplace(name, nullptr);
  AttributeMap attributes;
  for (const AttributeMessage& a : function.defaults) attributes[a.name] = &a;
  std::vector<AttributeMessage> resolved;
  resolved.reserve(call.attributes.size());
  for (const AttributeMessage& a : call.attributes) {
    if (a.reference.empty()) {
      attributes[a.name] = &a;
      continue;
    }
    if (!origin.attributes) return invalid_model(where + ": an attribute reference outside a function");
    if (auto it = origin.attributes->find(a.reference); it != origin.attributes->end())
      attributes[a.name] = it->second;
  }
  Origin body;
  body.prefix = fmt::format("{}{}/", origin.prefix, call.name.empty() ? call.op : call.name);
  body.attributes = &attributes;
  const auto opset = function.opset_imports.find("");
  body.opset = opset == function.opset_imports.end() ? origin.opset : opset->second;
  DECANT_RETURN_IF_ERROR(add_nodes(graph, function.nodes, inner, body, depth + 1));
  for (size_t k = 0; k < results.size(); ++k) {
    if (!results[k]) continue;
    ir::Value* value = find(inner, function.outputs[k]);
    if (!value) {
      return invalid_model(
          fmt::format("{}: function output '{}' is not produced", where, function.outputs[k]));
    }
    results[k]->set_input(0, value);
  }
  return ok_status();
}

Result<ir::ConstantPtr> GraphBuilder::constant_of(const NodeMessage& node, const Origin& origin) {
  if (node.attributes.size() != 1) return invalid_model("needs exactly one attribute");
  const AttributeMessage* a = &node.attributes[0];
  const std::string_view name = a->name;
  if (!a->reference.empty()) {
    const auto* outer = origin.attributes;
    auto it = outer ? outer->find(a->reference) : AttributeMap::const_iterator();
    if (!outer || it == outer->end()) return invalid_model("refers to an attribute that is not given");
    a = it->second;
  }
  auto typed = [&](int64_t type) { return a->type == type; };
  if (name == "value" && typed(kTensorAttribute)) {
    DECANT_ASSIGN(const TensorMessage tensor, parse_tensor(context_, a->tensor));
    return loader_.load(tensor);
  }
  if (name == "value_float" && typed(kFloatAttribute))
    return ir::Constant::from_tensor(ir::Tensor::scalar(a->f));
  if (name == "value_int" && typed(kIntAttribute)) return ir::Constant::from_tensor(ir::Tensor::scalar(a->i));
  if (name == "value_ints" && typed(kIntsAttribute))
    return ir::Constant::from_tensor(ir::Tensor::vector(a->ints));
  if (name == "value_floats" && typed(kFloatsAttribute)) {
    DECANT_ASSIGN(ir::Tensor t,
                  ir::Tensor::allocate(DType::kFloat32, {static_cast<int64_t>(a->floats.size())}));
    std::copy(a->floats.begin(), a->floats.end(), t.mutable_data_as<float>());
    return ir::Constant::from_tensor(t);
  }
  if ((name == "value_string" && typed(kStringAttribute)) ||
      (name == "value_strings" && typed(kStringsAttribute))) {
    const bool one = name == "value_string";
    std::vector<int64_t> dims;
    if (!one) dims.push_back(static_cast<int64_t>(a->strings.size()));
    DECANT_ASSIGN(ir::Tensor t, ir::Tensor::allocate(DType::kString, dims));
    auto* strings = t.mutable_data_as<std::string>();
    if (one) {
      *strings = a->s;
    } else {
      std::copy(a->strings.begin(), a->strings.end(), strings);
    }
    return ir::Constant::from_tensor(t);
  }
  if (name == "sparse_value") {
    return unsupported(fmt::format("attribute '{}' is not supported", name));
  }
  return invalid_model(fmt::format("attribute '{}' is of the wrong type or unknown", name));
}

Status GraphBuilder::set_attributes(ir::Node& node, const NodeMessage& message, const Scope& scope,
                                    const Origin& origin, int depth) {
  const std::string where = describe(message);
  for (const AttributeMessage& written : message.attributes) {
    const AttributeMessage* a = &written;
    if (!written.reference.empty()) {
      if (!origin.attributes) return invalid_model(where + ": an attribute reference outside a function");
      auto it = origin.attributes->find(written.reference);
      if (it == origin.attributes->end()) continue;  // the operator's default
      a = it->second;
    }
    const std::string name(written.name);
    if (node.attributes.contains(name))
      return invalid_model(fmt::format("{}: attribute '{}' is given twice", where, name));
    DECANT_RETURN_IF_ERROR(check_attribute_type(message.domain, name, a->type).with_context(where));
    switch (a->type) {
      case kTensorAttribute: {
        DECANT_ASSIGN(const TensorMessage tensor, parse_tensor(context_, a->tensor));
        auto constant = loader_.load(tensor);
        if (!constant.ok()) return std::move(constant).status().with_context(where);
        node.attributes[name] = *std::move(constant);
        break;
      }
      case kTypeAttribute: {
        DECANT_ASSIGN(const ValueMessage type, parse_type(context_, a->value_type));
        const auto kind = value_kind(type.kind);
        const DType dtype = ir::dtype_from_onnx_code(type.elem_type);
        if (!kind || dtype == DType::kUndefined) {
          return unsupported(fmt::format("{}: attribute '{}' is a {} of {}", where, name, type.kind,
                                         element_type_name(type.elem_type)));
        }
        node.attributes[name] = ir::TypeAttribute{*kind, dtype};
        break;
      }
      case kGraphAttribute: {
        auto sub = build_subgraph(a->graph, scope, origin, depth + 1);
        // Errors of nested graphs get no chain of names: at depth 64 it would be longer than the cause.
        if (!sub.ok()) return depth ? std::move(sub).status() : std::move(sub).status().with_context(where);
        node.attributes[name] = *std::move(sub);
        break;
      }
      default: {
        auto plain = plain_attribute(*a);
        if (!plain.ok()) return std::move(plain).status().with_context(where);
        node.attributes[name] = *std::move(plain);
      }
    }
  }
  return ok_status();
}

Result<std::shared_ptr<ir::Graph>> GraphBuilder::build_subgraph(Bytes bytes, const Scope& scope,
                                                                const Origin& origin, int depth) {
  if (depth > kMaxDepth)
    return invalid_model(fmt::format("functions and sub-graphs nested over {} deep", kMaxDepth));
  DECANT_ASSIGN(const GraphMessage message, parse_graph(context_, bytes));
  auto graph = std::make_shared<ir::Graph>();
  graph->name = message.name;
  Scope inner;
  inner.parent = &scope;
  DECANT_RETURN_IF_ERROR(add_initializers(*graph, message, inner));
  DECANT_RETURN_IF_ERROR(add_inputs(*graph, message, inner, false));
  Origin body = origin;
  DECANT_RETURN_IF_ERROR(add_nodes(*graph, message.nodes, inner, body, depth));
  for (const ValueMessage& v : message.outputs) {
    ir::Value* value = find(inner, v.name);
    if (!value)
      return invalid_model(fmt::format("sub-graph output '{}' is not produced by any node", v.name));
    graph->add_output(value);
  }
  DECANT_RETURN_IF_ERROR(graph->sort());
  return graph;
}

}  // namespace decant::onnx
