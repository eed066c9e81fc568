#include <gtest/gtest.h>

#include "ir/op.h"
#include "passes/match.h"
#include "passes/passes.h"

namespace decant::passes {
namespace {

using ir::Dim;
using ir::Graph;
using ir::Value;

Value* node(Graph& g, std::string op, std::vector<Value*> inputs, Attributes attributes = {}) {
  ir::Node* n = g.add_node(std::move(op), std::move(inputs));
  n->attributes = std::move(attributes);
  return n->output(0);
}

Value* number(Graph& g, float x) {
  return g.add_constant(g.unique_name("n"), ir::Constant::from_tensor(ir::Tensor::scalar(x)));
}

/// softmax(x transposed(y) / 2) y of an outer x and y.
std::shared_ptr<Graph> attention_branch(Value* x, Value* y, bool negated) {
  auto g = std::make_shared<Graph>();
  Value* keys = node(*g, "Transpose", {y}, {{"perm", std::vector<int64_t>{0, 2, 3, 1}}});
  Value* values = node(*g, "Transpose", {y}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  Value* scores = node(*g, "Mul", {node(*g, "MatMul", {x, keys}), number(*g, 0.5f)});
  Value* result = node(*g, "MatMul", {node(*g, "Softmax", {scores}, {{"axis", int64_t{-1}}}), values});
  g->add_output(negated ? node(*g, "Neg", {result}) : result);
  return g;
}

TEST(Optimize, LiftsInsideBranchesThatStay) {
  Graph g;
  const ir::Shape heads = {Dim::symbol("b"), 2, Dim::symbol("s"), 4};
  const ir::Shape joined = {Dim::symbol("b"), Dim::symbol("s"), 2, 4};
  Value* choice = g.add_input("choice", DType::kBool, ir::Shape{});
  Value* x = g.add_input("x", DType::kFloat32, heads);
  Value* y = g.add_input("y", DType::kFloat32, joined);
  g.add_output(
      node(g, "If", {choice},
           {{"then_branch", attention_branch(x, y, false)}, {"else_branch", attention_branch(x, y, true)}}));
  ASSERT_TRUE(ir::infer_types(g).ok());
  std::vector<ir::Tensor> inputs;
  for (const auto& dims : {std::vector<int64_t>{1, 2, 3, 4}, std::vector<int64_t>{1, 3, 2, 4}}) {
    ir::Tensor t = *ir::Tensor::allocate(DType::kFloat32, dims);
    for (int i = 0; i < 24; ++i) t.mutable_data_as<float>()[i] = 0.1f * static_cast<float>(i * 7 % 11) - 0.5f;
    inputs.push_back(t);
  }
  const auto run = [&](bool chosen) {
    ir::Tensor flag = *ir::Tensor::allocate(DType::kBool, {});
    flag.mutable_data_as<bool>()[0] = chosen;
    return ir::evaluate_graph(g, std::vector<ir::Tensor>{flag, inputs[0], inputs[1]});
  };
  const auto before_then = run(true), before_else = run(false);
  ASSERT_TRUE(before_then.ok() && before_else.ok()) << before_then.status().to_string();
  const Status optimized = optimize_for_forward(g);
  ASSERT_TRUE(optimized.ok()) << optimized.to_string();
  ASSERT_TRUE(ir::validate(g).ok()) << ir::validate(g).to_string();
  for (const char* branch : {"then_branch", "else_branch"}) {
    size_t lifted = 0;
    for (const auto& n : ir::subgraph(*g.nodes()[0], branch)->nodes()) lifted += n->is("Attention");
    EXPECT_EQ(lifted, 1u) << branch;
  }
  const auto after_then = run(true), after_else = run(false);
  ASSERT_TRUE(after_then.ok() && after_else.ok()) << after_then.status().to_string();
  for (int64_t i = 0; i < 24; ++i) {
    EXPECT_NEAR((*after_then)[0].double_at(i), (*before_then)[0].double_at(i), 1e-6);
    EXPECT_NEAR((*after_else)[0].double_at(i), (*before_else)[0].double_at(i), 1e-6);
  }
}

}  // namespace
}  // namespace decant::passes
