#include "api/custom_op.h"

#include <algorithm>
#include <set>

#include "base/status.h"
#include "ir/custom_op.h"

namespace decant {
namespace {

const ir::Node& node_of(const void* node) { return *static_cast<const ir::Node*>(node); }

TensorType type_of(const ir::Value* value) {
  TensorType type;
  if (!value) return type;
  type.dtype = value->dtype;
  if (value->shape) type.dims = api::dims_of(*value->shape);
  return type;
}

/// Calls the two functions of a CustomOp on graph values and tensors.
class Adapter final : public ir::CustomOp {
 public:
  explicit Adapter(decant::CustomOp op) : op_(std::move(op)) {}

  Status infer(ir::InferContext& context) const override {
    const ir::Node& node = context.node();
    std::vector<TensorType> inputs, outputs(node.outputs().size());
    for (const ir::Value* v : node.inputs()) inputs.push_back(type_of(v));
    DECANT_RETURN_IF_ERROR(infer(node, inputs, outputs));
    for (size_t i = 0; i < outputs.size(); ++i) {
      std::optional<ir::Shape> shape;
      if (outputs[i].dims) {
        shape.emplace();
        for (const Dim& d : *outputs[i].dims) {
          if (d.size < 0 && d.symbol.empty()) {
            shape->push_back(context.fresh_symbol(node.name));
          } else {
            shape->push_back(d.size >= 0 ? ir::Dim(d.size) : ir::Dim::parse(d.symbol));
          }
        }
      }
      context.set_output(i, outputs[i].dtype, std::move(shape));
    }
    return ok_status();
  }

  Result<std::vector<ir::Tensor>> eval(const ir::Node& node,
                                       std::span<const ir::Tensor* const> inputs) const override {
    std::vector<TensorType> types, out_types(node.outputs().size());
    std::vector<TensorView> views;
    for (const ir::Tensor* t : inputs) {
      views.push_back(t ? TensorView{t->dtype(), t->dims(), t->data(), t->elements()} : TensorView{});
      types.emplace_back();
      if (!t) continue;
      types.back().dtype = t->dtype();
      types.back().dims.emplace(t->dims().begin(), t->dims().end());
    }
    DECANT_RETURN_IF_ERROR(infer(node, types, out_types));
    std::vector<ir::Tensor> results;
    std::vector<MutableTensorView> out_views;
    for (const TensorType& type : out_types) {
      std::vector<int64_t> dims;
      for (const Dim& d : type.dims ? *type.dims : std::vector<Dim>{Dim()}) {
        if (d.size < 0)
          return invalid_argument(node.describe() +
                                  ": its infer function left a dim open for inputs of known dims");
        dims.push_back(d.size);
      }
      DECANT_ASSIGN(ir::Tensor t, ir::Tensor::allocate(type.dtype, std::move(dims)));
      results.push_back(std::move(t));
    }
    for (ir::Tensor& t : results) out_views.push_back({t.dtype(), t.dims(), t.mutable_data(), t.elements()});
    const Attributes attributes(&node);
    if (Status s = op_.compute({attributes, views, out_views}); !s.ok())
      return std::move(s).with_context(node.describe());
    return results;
  }

 private:
  Status infer(const ir::Node& node, std::span<const TensorType> inputs,
               std::span<TensorType> outputs) const {
    const Attributes attributes(&node);
    if (Status s = op_.infer({attributes, inputs, outputs}); !s.ok())
      return std::move(s).with_context(node.describe());
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (node.output(i) && outputs[i].dtype == DType::kUndefined) {
        return invalid_argument(node.describe() + ": its infer function gave output " + std::to_string(i) +
                                " no dtype");
      }
    }
    return ok_status();
  }

  decant::CustomOp op_;
};

}  // namespace

bool Attributes::has(std::string_view name) const { return node_of(node_).attributes.contains(name); }
int64_t Attributes::integer(std::string_view name, int64_t fallback) const {
  return node_of(node_).int_attribute(name, fallback);
}
float Attributes::number(std::string_view name, float fallback) const {
  return node_of(node_).float_attribute(name, fallback);
}
std::string Attributes::text(std::string_view name, std::string fallback) const {
  return node_of(node_).string_attribute(name, std::move(fallback));
}
std::vector<int64_t> Attributes::integers(std::string_view name) const {
  const auto* v = node_of(node_).attribute<std::vector<int64_t>>(name);
  return v ? *v : std::vector<int64_t>();
}
std::vector<float> Attributes::numbers(std::string_view name) const {
  const auto* v = node_of(node_).attribute<std::vector<float>>(name);
  return v ? *v : std::vector<float>();
}

namespace api {

std::vector<Dim> dims_of(const ir::Shape& shape) {
  std::vector<Dim> dims;
  for (const ir::Dim& d : shape) {
    const auto number = d.as_constant();
    dims.push_back(number ? Dim(*number) : Dim(d.to_string()));
  }
  return dims;
}

Result<CustomOps> CustomOps::create(const std::vector<CustomOp>& ops) {
  CustomOps out;
  for (const CustomOp& op : ops) {
    const std::string name = op.domain + (op.domain.empty() ? "" : "::") + op.name;
    if (op.name.empty()) return invalid_argument("a custom operator without a name");
    if (!op.infer || !op.compute)
      return invalid_argument("custom operator " + name + " needs both an infer and a compute function");
    if (!out.ops_.emplace(std::pair(op.domain, op.name), std::make_shared<Adapter>(op)).second)
      return invalid_argument("custom operator " + name + " was given twice");
  }
  return out;
}

void CustomOps::attach(ir::Graph& graph) const {
  if (ops_.empty()) return;
  for (const auto& node : graph.nodes()) {
    if (!node) continue;
    if (auto it = ops_.find(std::pair(node->domain(), node->op())); it != ops_.end())
      node->custom = it->second;
    for (auto& [key, attribute] : node->attributes) {
      if (auto* sub = std::get_if<std::shared_ptr<ir::Graph>>(&attribute); sub && *sub) attach(**sub);
    }
  }
}

}  // namespace api
}  // namespace decant
