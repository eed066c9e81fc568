#include "formats/onnx/adapters/quantized.h"

#include <fmt/format.h>

#include "ir/ops/elements.h"

namespace decant::onnx {
namespace {

ir::Value* integer_sums(Adaptation& a, const Quantized& x, const Quantized& y) {
  std::vector<ir::Value*> inputs = {x.data, y.data, x.zero, y.zero};
  while (!inputs.back()) inputs.pop_back();
  return a.emit("MatMulInteger", inputs);
}

ir::Value* scaled(Adaptation& a, ir::Value* sums, ir::Value* x_scale, ir::Value* y_scale) {
  return a.emit("Mul", {a.cast(sums, DType::kFloat32), a.emit("Mul", {x_scale, y_scale})});
}

Status need(const Adaptation& a, std::initializer_list<size_t> inputs) {
  for (const size_t i : inputs) {
    if (!a.node.input(i)) return a.bad_form(fmt::format("input {} is left out", i));
  }
  return ok_status();
}

Status finish(Adaptation& a, ir::Value* y) {
  a.replace_output(0, y);
  a.remove();
  return ok_status();
}

/// Per tensor, so the axis does not matter.
ir::Value* dequantized(Adaptation& a, const Quantized& x) {
  std::vector<ir::Value*> inputs = {x.data, x.scale};
  if (x.zero) inputs.push_back(x.zero);
  return a.emit("DequantizeLinear", inputs);
}

/// To the type of the zero point, or of `like` without one.
ir::Value* quantized(Adaptation& a, ir::Value* x, ir::Value* scale, ir::Value* zero, const ir::Value* like) {
  Adaptation::Attributes attributes;
  std::vector<ir::Value*> inputs = {x, scale};
  if (zero) {
    inputs.push_back(zero);
  } else {
    attributes.emplace_back("output_dtype", ir::onnx_code(like->dtype));
  }
  return a.emit("QuantizeLinear", inputs, attributes);
}

Quantized operand(const Adaptation& a, size_t at) {
  return {a.node.input(at), a.node.input(at + 1), a.node.input(at + 2)};
}

}  // namespace

ir::Value* integer_product(Adaptation& a, const Quantized& x, const Quantized& y) {
  return scaled(a, integer_sums(a, x, y), x.scale, y.scale);
}

/// DynamicQuantizeMatMul(A, B, b_scale, [b_zero_point], [bias]).
Status adapt_dynamic_quantize_matmul(Adaptation& a) {
  DECANT_RETURN_IF_ERROR(need(a, {0, 1, 2}));
  ir::Node* x = a.emit_node("DynamicQuantizeLinear", {a.node.input(0)}, 3);
  ir::Value* y = integer_product(a, {x->output(0), x->output(1), x->output(2)},
                                 {a.node.input(1), a.node.input(2), a.node.input(3)});
  if (a.node.input(4)) y = a.emit("Add", {y, a.node.input(4)});
  return finish(a, y);
}

/// MatMulIntegerToFloat(A, B, a_scale, b_scale, [a_zero_point], [b_zero_point], [bias]).
Status adapt_matmul_integer_to_float(Adaptation& a) {
  DECANT_RETURN_IF_ERROR(need(a, {0, 1, 2, 3}));
  ir::Value* y = integer_product(a, {a.node.input(0), a.node.input(2), a.node.input(4)},
                                 {a.node.input(1), a.node.input(3), a.node.input(5)});
  if (a.node.input(6)) y = a.emit("Add", {y, a.node.input(6)});
  return finish(a, y);
}

/// QGemm(A, a_scale, a_zero, B, b_scale, b_zero, [C], [y_scale], [y_zero]): C in steps of a_scale * b_scale.
Status adapt_qgemm(Adaptation& a) {
  DECANT_RETURN_IF_ERROR(need(a, {0, 1, 2, 3, 4, 5}));
  Quantized x = operand(a, 0), w = operand(a, 3);
  if (a.node.int_attribute("transA", 0) != 0)
    x.data = a.emit("Transpose", {x.data}, {{"perm", std::vector<int64_t>{1, 0}}});
  if (a.node.int_attribute("transB", 0) != 0)
    w.data = a.emit("Transpose", {w.data}, {{"perm", std::vector<int64_t>{1, 0}}});
  ir::Value* sums = integer_sums(a, x, w);
  if (a.node.input(6)) sums = a.emit("Add", {sums, a.node.input(6)});
  ir::Value* y = scaled(a, sums, x.scale, w.scale);
  if (const float alpha = a.node.float_attribute("alpha", 1.0f); alpha != 1.0f) {
    y = a.emit("Mul", {y, a.scalar("alpha", DType::kFloat32, alpha)});
  }
  if (a.node.input(7)) y = quantized(a, y, a.node.input(7), a.node.input(8), a.node.input(0));
  return finish(a, y);
}

/// QLinearAdd, QLinearMul(A, a_scale, a_zero, B, b_scale, b_zero, c_scale, c_zero).
Status adapt_qlinear_binary(Adaptation& a) {
  DECANT_RETURN_IF_ERROR(need(a, {0, 1, 3, 4, 6}));
  const std::string op = a.node.op() == "QLinearAdd" ? "Add" : "Mul";
  ir::Value* y = a.emit(op, {dequantized(a, operand(a, 0)), dequantized(a, operand(a, 3))});
  return finish(a, quantized(a, y, a.node.input(6), a.node.input(7), a.node.input(0)));
}

/// QLinearSigmoid, QLinearLeakyRelu, QLinearReduceMean, QLinearSoftmax, QLinearGlobalAveragePool,
/// QLinearAveragePool(X, x_scale, x_zero, y_scale, y_zero): the float operator between the two conversions.
Status adapt_qlinear_unary(Adaptation& a) {
  DECANT_RETURN_IF_ERROR(need(a, {0, 1, 3}));
  const std::string op = a.node.op().substr(std::string_view("QLinear").size());
  Adaptation::Attributes attributes(a.node.attributes.begin(), a.node.attributes.end());
  std::erase_if(attributes, [](const auto& kv) {
    return kv.first == "channels_last" || kv.first == "opset" || kv.first == "axes";
  });
  if (a.node.int_attribute("channels_last", 0) != 0) return a.unsupported_form("channels_last");
  if (op == "Softmax" && a.node.int_attribute("opset", 13) < 13) {
    const auto& shape = a.node.input(0)->shape;
    const int64_t axis = a.node.int_attribute("axis", -1);
    if (axis != -1 && (!shape || axis != static_cast<int64_t>(shape->size()) - 1))
      return a.unsupported_form("softmax over several axes");
  }
  std::vector<ir::Value*> inputs = {dequantized(a, operand(a, 0))};
  if (const auto* axes = a.node.attribute<std::vector<int64_t>>("axes"); axes && op == "ReduceMean") {
    inputs.push_back(a.ints("axes", *axes));
  }
  return finish(
      a, quantized(a, a.emit(op, inputs, attributes), a.node.input(3), a.node.input(4), a.node.input(0)));
}

/// QLinearConcat(y_scale, y_zero, (x, x_scale, x_zero)...).
Status adapt_qlinear_concat(Adaptation& a) {
  DECANT_RETURN_IF_ERROR(need(a, {0, 2, 3}));
  DECANT_ASSIGN(const int64_t axis, a.required_int("axis", INT64_MIN));
  std::vector<ir::Value*> parts;
  for (size_t i = 2; i < a.node.inputs().size(); i += 3) {
    DECANT_RETURN_IF_ERROR(need(a, {i, i + 1}));
    parts.push_back(dequantized(a, operand(a, i)));
  }
  ir::Value* y = a.emit("Concat", parts, {{"axis", axis}});
  return finish(a, quantized(a, y, a.node.input(0), a.node.input(1), a.node.input(2)));
}

/// QLinearWhere(condition, X, x_scale, x_zero, Y, y_scale, y_zero, z_scale, z_zero).
Status adapt_qlinear_where(Adaptation& a) {
  DECANT_RETURN_IF_ERROR(need(a, {0, 1, 2, 4, 5, 7}));
  ir::Value* z =
      a.emit("Where", {a.node.input(0), dequantized(a, operand(a, 1)), dequantized(a, operand(a, 4))});
  return finish(a, quantized(a, z, a.node.input(7), a.node.input(8), a.node.input(1)));
}

}  // namespace decant::onnx
