#include "passes/match.h"
#include "passes/passes.h"

namespace decant::passes {

Result<bool> split_gemm(ir::Graph& graph) {
  return rewrite(graph, [&](ir::Node& node) -> Result<ir::Value*> {
    ir::Value *x = node.input(0), *matrix = node.input(1), *bias = node.input(2);
    if (!node.is("Gemm") || !matrix->constant || !is_float(node.output(0)->dtype) || !x->shape ||
        x->shape->size() != 2)
      return nullptr;
    if (node.int_attribute("transA", 0) != 0 || node.float_attribute("alpha", 1.0f) != 1.0f ||
        (bias && node.float_attribute("beta", 1.0f) != 1.0f))
      return nullptr;
    if (bias && (!bias->shape || bias->shape->size() > 2)) return nullptr;
    ir::Value* product = nullptr;
    if (node.int_attribute("transB", 0) != 0) {
      DECANT_ASSIGN(product,
                    add_typed(graph, "FusedMatMul", {x, matrix}, {{"transB", int64_t{1}}}, "com.microsoft"));
    } else {
      DECANT_ASSIGN(product, add_typed(graph, "MatMul", {x, matrix}));
    }
    if (!bias) return product;
    DECANT_ASSIGN(ir::Value * sum, add_typed(graph, "Add", {product, bias}));
    return sum->shape && product->shape && *sum->shape == *product->shape ? sum : nullptr;
  });
}

}  // namespace decant::passes
