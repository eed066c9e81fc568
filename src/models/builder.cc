#include "models/builder.h"

#include "ir/ops/elements.h"
#include "ir/tensor.h"

namespace decant::models {

Builder::Builder(WeightReader& weights, DType dtype)
    : weights_(weights), dtype_(dtype), graph_(std::make_unique<ir::Graph>()) {}

ir::Value* Builder::op(const std::string& type, std::vector<ir::Value*> inputs, Attributes attributes,
                       const std::string& scope) {
  const std::string name = scope.empty() ? type : scope + "." + type;
  ir::Node* node = graph_->add_node(type, std::move(inputs), 1, graph_->unique_name(name));
  for (auto& [key, value] : attributes) node->attributes.emplace(std::move(key), std::move(value));
  return node->output(0);
}

ir::Value* Builder::weight(const std::string& name, std::vector<int64_t> dims) {
  auto [it, fresh] = shared_.try_emplace(name);
  if (fresh) it->second = graph_->add_constant(name, ir::cast_constant(weights_.get(name, dims), dtype_));
  return it->second;
}

ir::Value* Builder::transposed_weight(const std::string& name, int64_t rows, int64_t columns) {
  auto [it, fresh] = shared_.try_emplace(name + " transposed");
  if (fresh) {
    ir::ConstantPtr matrix = ir::cast_constant(weights_.get(name, {rows, columns}), dtype_);
    it->second = graph_->add_constant(graph_->unique_name(name), ir::transpose_constant(std::move(matrix)));
  }
  return it->second;
}

ir::Value* Builder::constant(const std::string& hint, const ir::Tensor& tensor) {
  std::string key = hint + ir::describe(tensor) + ":";
  key.append(static_cast<const char*>(tensor.data()), tensor.bytes());
  auto [it, fresh] = shared_.try_emplace(std::move(key));
  if (fresh) it->second = graph_->add_constant(graph_->unique_name(hint), ir::Constant::from_tensor(tensor));
  return it->second;
}

ir::Value* Builder::int_scalar(int64_t value) { return constant("int", ir::Tensor::scalar(value)); }
ir::Value* Builder::ints(std::vector<int64_t> values) { return constant("ints", ir::Tensor::vector(values)); }
ir::Value* Builder::float_scalar(float value) { return constant("float", ir::Tensor::scalar(value)); }

ir::Value* Builder::floats(const std::vector<float>& values) {
  auto owner = std::make_shared<std::vector<float>>(values);
  const float* data = owner->data();
  return constant("floats", ir::Tensor::view(DType::kFloat32, {static_cast<int64_t>(values.size())}, data,
                                             std::move(owner)));
}

ir::Value* Builder::cast(ir::Value* x, DType dtype) {
  return op("Cast", {x}, {{"to", ir::onnx_code(dtype)}});
}

ir::Value* Builder::size(ir::Value* x, int64_t axis) {
  return op("Gather", {op("Shape", {x}), int_scalar(axis)}, {{"axis", int64_t{0}}});
}

}  // namespace decant::models
