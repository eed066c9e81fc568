#include <gtest/gtest.h>

#include <cmath>

#include "ir/op.h"
#include "passes/match.h"
#include "passes/passes.h"

namespace decant::passes {
namespace {

ir::Tensor filled(std::vector<int64_t> dims, float start) {
  ir::Tensor t = *ir::Tensor::allocate(DType::kFloat32, std::move(dims));
  for (int64_t i = 0; i < t.elements(); ++i)
    t.mutable_data_as<float>()[i] = start + 0.37f * static_cast<float>(i % 7);
  return t;
}

TEST(FoldBatchNorm, GivesWhatTheTwoNodesGave) {
  for (const bool with_bias : {false, true}) {
    ir::Graph g;
    ir::Value* x = g.add_input("x", DType::kFloat32, ir::Shape{1, 2, 4, 4});
    const auto constant = [&](const char* name, std::vector<int64_t> dims, float start) {
      return g.add_constant(name, ir::Constant::from_tensor(filled(std::move(dims), start)));
    };
    std::vector<ir::Value*> inputs = {x, constant("w", {3, 2, 3, 3}, -1)};
    if (with_bias) inputs.push_back(constant("b", {3}, 2));
    ir::Value* conv = *add_typed(g, "Conv", inputs);
    g.add_output(*add_typed(g, "BatchNormalization",
                            {conv, constant("scale", {3}, 0.5), constant("shift", {3}, -0.25),
                             constant("mean", {3}, 0.1f), constant("variance", {3}, 1)}));
    const ir::Tensor input = filled({1, 2, 4, 4}, -0.6f);
    const auto before = ir::evaluate_graph(g, std::span(&input, 1));
    const auto changed = fold_batch_norm(g);
    ASSERT_TRUE(changed.ok() && *changed);
    EXPECT_EQ(g.nodes().size(), 1u);
    const auto after = ir::evaluate_graph(g, std::span(&input, 1));
    ASSERT_TRUE(before.ok() && after.ok());
    for (int64_t i = 0; i < (*before)[0].elements(); ++i) {
      EXPECT_NEAR((*before)[0].double_at(i), (*after)[0].double_at(i), 1e-5);
    }
  }
}

TEST(FoldBatchNorm, LeavesAConvolutionThatOthersRead) {
  ir::Graph g;
  ir::Value* x = g.add_input("x", DType::kFloat32, ir::Shape{1, 1, 2, 2});
  ir::Value* w = g.add_constant("w", ir::Constant::from_tensor(filled({1, 1, 1, 1}, 1)));
  ir::Value* one = g.add_constant("one", ir::Constant::from_tensor(filled({1}, 1)));
  ir::Value* conv = *add_typed(g, "Conv", {x, w});
  g.add_output(*add_typed(g, "BatchNormalization", {conv, one, one, one, one}));
  g.add_output(conv);
  const auto changed = fold_batch_norm(g);
  ASSERT_TRUE(changed.ok());
  EXPECT_FALSE(*changed);
}

}  // namespace
}  // namespace decant::passes
