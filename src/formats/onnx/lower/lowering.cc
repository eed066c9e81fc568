#include "formats/onnx/lower/lowering.h"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "base/half.h"
#include "ir/op.h"
#include "ir/ops/elements.h"

namespace decant::onnx {

ir::Node* Lowering::emit_node(std::string op, std::vector<ir::Value*> inputs, size_t outputs,
                              Attributes attributes) {
  std::string name = graph_.unique_name(fmt::format("{}/{}", prefix_, op));
  ir::Node* node = graph_.add_node(std::move(op), std::move(inputs), outputs, std::move(name));
  for (auto& [key, value] : attributes) node->attributes[key] = std::move(value);
  if (status_.ok()) status_ = ir::infer_node(graph_, *node);
  return node;
}

ir::Value* Lowering::emit(std::string op, std::vector<ir::Value*> inputs, Attributes attributes) {
  return emit_node(std::move(op), std::move(inputs), 1, std::move(attributes))->output(0);
}

ir::Value* Lowering::emit_vendor(std::string op, std::vector<ir::Value*> inputs, Attributes attributes,
                                 DType dtype, std::optional<ir::Shape> shape) {
  std::string name = graph_.unique_name(fmt::format("{}/{}", prefix_, op));
  ir::Node* node = graph_.add_node(std::move(op), std::move(inputs), 1, std::move(name), "com.microsoft");
  for (auto& [key, value] : attributes) node->attributes[key] = std::move(value);
  node->output(0)->dtype = dtype;
  node->output(0)->shape = std::move(shape);
  return node->output(0);
}

ir::Value* Lowering::ints(std::vector<int64_t> values) {
  std::string key = "ints";
  for (const int64_t v : values) key += fmt::format(" {}", v);
  ir::Value*& value = shared[key];
  if (!value) {
    value = graph_.add_constant(graph_.unique_name("lowered/ints"),
                                ir::Constant::from_tensor(ir::Tensor::vector(values)));
  }
  return value;
}

ir::Value* Lowering::int_scalar(int64_t element) {
  ir::Value*& value = shared[fmt::format("int {}", element)];
  if (!value) {
    value = graph_.add_constant(graph_.unique_name("lowered/int"),
                                ir::Constant::from_tensor(ir::Tensor::scalar(element)));
  }
  return value;
}

ir::Value* Lowering::number(DType dtype, double element) {
  ir::Value*& value = shared[fmt::format("{} {}", to_string(dtype), element)];
  if (value) return value;
  auto bytes = std::make_shared<std::array<std::byte, 8>>();
  const auto narrow = static_cast<float>(element);
  if (dtype == DType::kFloat64) {
    std::memcpy(bytes->data(), &element, 8);
  } else if (dtype == DType::kFloat32) {
    std::memcpy(bytes->data(), &narrow, 4);
  } else {
    const uint16_t bits = dtype == DType::kFloat16 ? float_to_f16(narrow) : float_to_bf16(narrow);
    std::memcpy(bytes->data(), &bits, 2);
  }
  value = graph_.add_constant(graph_.unique_name("lowered/number"),
                              ir::Constant::from_tensor(ir::Tensor::view(dtype, {}, bytes->data(), bytes)));
  return value;
}

ir::Value* Lowering::cast(ir::Value* x, DType dtype) {
  if (x->dtype == dtype) return x;
  return emit("Cast", {x}, {{"to", ir::onnx_code(dtype)}});
}

ir::Value* Lowering::transpose(ir::Value* x, std::vector<int64_t> perm) {
  return emit("Transpose", {x}, {{"perm", std::move(perm)}});
}

void Lowering::replace(ir::Node& node, size_t i, ir::Value* value) {
  ir::Value* old = node.output(i);
  if (!old) return;
  if (value->producer && !value->is_constant() && !graph_.is_output(value)) {
    std::swap(value->name, old->name);
  } else if (graph_.is_output(old)) {
    value = emit("Identity", {value});
    std::swap(value->name, old->name);
  }
  if (!value->shape) value->shape = old->shape;
  graph_.replace_all_uses(old, value);
}

Status Lowering::unsupported_node(const ir::Node& node, std::string_view what) const {
  return unsupported(fmt::format("{} cannot be expressed in opset {}: {}", node.describe(), opset_, what));
}

}  // namespace decant::onnx
