#include "formats/onnx/lower/lowering.h"

namespace decant::onnx {

Status lower_fused_matmul(Lowering& l, ir::Node& node) {
  ir::Value *x = node.input(0), *matrix = l.cast(node.input(1), node.input(0)->dtype);
  for (const char* other : {"transA", "transBatchA", "transBatchB"}) {
    if (node.int_attribute(other, 0) != 0) return l.unsupported_node(node, std::string("its ") + other);
  }
  if (node.int_attribute("transB", 0) != 0) {
    if (!matrix->shape || matrix->shape->size() < 2)
      return l.unsupported_node(node, "the rank of its matrix is not known");
    std::vector<int64_t> perm(matrix->shape->size());
    for (size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<int64_t>(i);
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    matrix = l.transpose(matrix, std::move(perm));
  }
  ir::Value* y = l.emit("MatMul", {x, matrix});
  if (const float alpha = node.float_attribute("alpha", 1.0f); alpha != 1.0f)
    y = l.emit("Mul", {y, l.number(y->dtype, static_cast<double>(alpha))});
  l.replace(node, 0, y);
  return ok_status();
}

}  // namespace decant::onnx
