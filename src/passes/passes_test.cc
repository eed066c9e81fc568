#include "passes/passes.h"

#include <gtest/gtest.h>

#include "ir/op.h"
#include "passes/match.h"

namespace decant::passes {
namespace {

using ir::Dim;
using ir::Graph;
using ir::Node;
using ir::Value;

ir::ConstantPtr ints_constant(std::vector<int64_t> v) {
  return ir::Constant::from_tensor(ir::Tensor::vector(v));
}

Value* node(Graph& g, std::string op, std::vector<Value*> inputs,
            std::map<std::string, ir::Attribute, std::less<>> attributes = {}) {
  auto n = add_typed(g, std::move(op), std::move(inputs), std::move(attributes));
  EXPECT_TRUE(n.ok()) << n.status().to_string();
  return *n;
}

size_t count(const Graph& g, std::string_view op) {
  size_t n = 0;
  for (const auto& x : g.nodes()) n += x->op() == op;
  return n;
}

TEST(FoldConstants, KnownIntegersBecomeConstants) {
  Graph g;
  Value* x = g.add_input("x", DType::kFloat32, ir::Shape{Dim::symbol("b"), Dim(12)});
  Value* shape = node(g, "Shape", {x}, {{"start", int64_t{1}}});
  Value* four = node(g, "Div", {shape, g.add_constant("three", ints_constant({3}))});
  Value* target =
      node(g, "Concat", {g.add_constant("free", ints_constant({-1})), four}, {{"axis", int64_t{0}}});
  g.add_output(node(g, "Reshape", {x, target}));
  auto changed = fold_constants(g);
  ASSERT_TRUE(changed.ok() && *changed);
  g.remove_dead();
  EXPECT_EQ(g.nodes().size(), 1u);
  EXPECT_EQ(*ints(g.nodes()[0]->input(1)), (std::vector<int64_t>{-1, 4}));
}

TEST(FoldConstants, LeavesBombsAlone) {
  Graph g;
  Value* huge = node(g, "ConstantOfShape", {g.add_constant("shape", ints_constant({int64_t{1} << 36}))});
  g.add_output(huge);
  auto changed = fold_constants(g);
  ASSERT_TRUE(changed.ok());
  EXPECT_FALSE(*changed);
}

TEST(GatherRows, WholeRowsOnly) {
  Graph g;
  Value* x = g.add_input("x", DType::kInt64, ir::Shape{Dim::symbol("n"), Dim(3)});
  Value* rows = g.add_input("rows", DType::kInt64, ir::Shape{Dim::symbol("m"), Dim(1)});
  Value* cells = g.add_input("cells", DType::kInt64, ir::Shape{Dim::symbol("m"), Dim(2)});
  g.add_output(node(g, "GatherND", {x, rows}));
  g.add_output(node(g, "GatherND", {x, cells}));
  const std::vector<ir::Tensor> inputs = {
      ir::Tensor::vector(std::vector<int64_t>{0, 1, 2, 3, 4, 5}).reshaped({2, 3}),
      ir::Tensor::vector(std::vector<int64_t>{1, -2}).reshaped({2, 1}),
      ir::Tensor::vector(std::vector<int64_t>{1, 2, 0, 1}).reshaped({2, 2})};
  const auto before = ir::evaluate_graph(g, inputs);
  auto changed = gather_rows(g);
  ASSERT_TRUE(before.ok() && changed.ok() && *changed);
  EXPECT_EQ(count(g, "GatherND"), 1u);
  const auto after = ir::evaluate_graph(g, inputs);
  ASSERT_TRUE(after.ok()) << after.status().to_string();
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_EQ((*after)[i].dims(), (*before)[i].dims());
    for (int64_t e = 0; e < (*after)[i].elements(); ++e)
      EXPECT_EQ((*after)[i].double_at(e), (*before)[i].double_at(e));
  }
}

TEST(InlineBranches, AConstantConditionLeavesOneBranch) {
  for (const bool chosen : {true, false}) {
    Graph g;
    Value* x = g.add_input("x", DType::kFloat32, ir::Shape{Dim::symbol("b"), Dim(4)});
    auto flag = ir::Tensor::allocate(DType::kBool, {});
    *flag->mutable_data_as<uint8_t>() = chosen;
    Node* choice = g.add_node("If", {g.add_constant("flag", ir::Constant::from_tensor(*flag))}, 3);
    for (const char* name : {"then_branch", "else_branch"}) {
      auto branch = std::make_shared<Graph>();
      const bool then = name[0] == 't';
      branch->add_output(branch->add_node(then ? "Neg" : "Abs", {x}, 1, "inner")->output(0));
      branch->add_output(x);
      branch->add_output(branch->outputs()[0]);
      choice->attributes[name] = branch;
    }
    Value* after = g.add_node("Relu", {choice->output(0)}, 1, "inner")->output(0);
    const std::vector<std::string> names = {"first", "second", "third"};
    for (size_t i = 0; i < 3; ++i) {
      choice->output(i)->name = names[i];
      g.add_output(choice->output(i));
    }
    g.add_output(after);
    ASSERT_TRUE(ir::infer_types(g).ok());
    auto changed = inline_branches(g);
    ASSERT_TRUE(changed.ok() && *changed);
    EXPECT_EQ(count(g, "If"), 0u);
    EXPECT_EQ(count(g, chosen ? "Neg" : "Abs"), 1u);
    EXPECT_EQ(count(g, chosen ? "Abs" : "Neg"), 0u);
    EXPECT_EQ(x->name, "x");
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(g.outputs()[i]->name, names[i]);
    ASSERT_TRUE(ir::validate(g).ok()) << ir::validate(g).to_string();
    EXPECT_EQ(x->users().size(), 2u);
    auto in = ir::Tensor::allocate(DType::kFloat32, {1, 4});
    for (int i = 0; i < 4; ++i) in->mutable_data_as<float>()[i] = -2.0f;
    const auto out = *ir::evaluate_graph(g, std::vector<ir::Tensor>{*in});
    EXPECT_EQ(out[0].double_at(0), 2);
    EXPECT_EQ(out[1].double_at(0), -2);
    EXPECT_EQ(out[2].double_at(0), 2);
    EXPECT_EQ(out[3].double_at(0), 2);
  }
}

TEST(Simplify, DropsWhatDoesNothing) {
  Graph g;
  Value* x = g.add_input("x", DType::kFloat32, ir::Shape{Dim::symbol("b"), Dim(4)});
  Value* one = g.add_constant("one", ir::Constant::from_tensor(ir::Tensor::scalar(1.0f)));
  Value* y = node(g, "Identity", {node(g, "Mul", {node(g, "Cast", {x}, {{"to", int64_t{1}}}), one})});
  g.add_output(node(g, "Neg", {y}));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(simplify(g).ok());
  g.remove_dead();
  EXPECT_EQ(g.nodes().size(), 1u);
}

TEST(LiftRmsNorm, TakesTheSpellingsOfExporters) {
  for (const bool pow : {false, true}) {
    for (const int inverse : {0, 1, 2}) {
      Graph g;
      Value* x = g.add_input("x", DType::kFloat32, ir::Shape{Dim::symbol("n"), Dim(4)});
      auto number = [&](float v) {
        return g.add_constant(g.unique_name("c"), ir::Constant::from_tensor(ir::Tensor::scalar(v)));
      };
      Value* square = pow ? node(g, "Pow", {x, number(2)}) : node(g, "Mul", {x, x});
      Value* mean = node(g, "ReduceMean", {square, g.add_constant("axes", ints_constant({-1}))});
      Value* root = node(g, "Sqrt", {node(g, "Add", {mean, number(1e-6f)})});
      Value* scaled = inverse == 0   ? node(g, "Div", {x, root})
                      : inverse == 1 ? node(g, "Mul", {x, node(g, "Reciprocal", {root})})
                                     : node(g, "Mul", {node(g, "Div", {number(1), root}), x});
      const float w[] = {1, 2, 3, 4};
      auto weight = ir::Tensor::allocate(DType::kFloat32, {4});
      std::copy(std::begin(w), std::end(w), weight->mutable_data_as<float>());
      g.add_output(node(g, "Mul", {g.add_constant("w", ir::Constant::from_tensor(*weight)), scaled}));
      auto lifted = lift_norms(g);
      ASSERT_TRUE(lifted.ok() && *lifted) << pow << inverse;
      EXPECT_EQ(g.nodes().size(), 1u);
      EXPECT_FLOAT_EQ(g.nodes()[0]->float_attribute("epsilon", 0), 1e-6f);
    }
  }
}

TEST(LiftRmsNorm, LeavesOtherMeansAlone) {
  Graph g;
  Value* x = g.add_input("x", DType::kFloat32, ir::Shape{Dim::symbol("n"), Dim(4)});
  Value* other = g.add_input("y", DType::kFloat32, ir::Shape{Dim::symbol("n"), Dim(4)});
  Value* eps = g.add_constant("eps", ir::Constant::from_tensor(ir::Tensor::scalar(1e-6f)));
  Value* mean = node(g, "ReduceMean", {node(g, "Mul", {x, x}), g.add_constant("axes", ints_constant({-1}))});
  Value* scaled = node(g, "Div", {other, node(g, "Sqrt", {node(g, "Add", {mean, eps})})});
  g.add_output(
      node(g, "Mul", {g.add_constant("w", ir::Constant::from_tensor(ir::Tensor::scalar(2.0f))), scaled}));
  auto lifted = lift_norms(g);
  ASSERT_TRUE(lifted.ok());
  EXPECT_FALSE(*lifted);
}

TEST(CorrectLabels, PastPlusOneMeansPastPlusNew) {
  Graph g;
  g.add_input("input_ids", DType::kInt64, ir::Shape{Dim::symbol("b"), Dim::symbol("s")});
  Value* mask =
      g.add_input("attention_mask", DType::kInt64, ir::Shape{Dim::symbol("b"), Dim::symbol("p") + Dim(1)});
  g.add_input("past_key_values.0.key", DType::kFloat32,
              ir::Shape{Dim::symbol("b"), Dim(2), Dim::symbol("p"), Dim(4)});
  ASSERT_TRUE(*correct_labels(g));
  EXPECT_EQ((*mask->shape)[1], Dim::symbol("p") + Dim::symbol("s"));
}

TEST(KeepLastLogits, CutsBeforeTheHead) {
  Graph g;
  Value* x = g.add_input("x", DType::kFloat32, ir::Shape{Dim::symbol("b"), Dim::symbol("s"), Dim(4)});
  auto table = ir::Tensor::allocate(DType::kFloat32, {4, 9});
  Value* logits = node(g, "MatMul", {x, g.add_constant("head", ir::Constant::from_tensor(*table))});
  logits->name = "logits";
  g.add_output(logits);
  ASSERT_TRUE(*keep_last_logits(g));
  EXPECT_EQ((*g.outputs()[0]->shape)[1], Dim(1));
  EXPECT_EQ(count(g, "Slice"), 1u);
  EXPECT_TRUE(g.outputs()[0]->producer->is("MatMul"));
}

TEST(FoldWeightTranspose, ReadsATiedTableAsStored) {
  Graph g;
  Value* x = g.add_input("x", DType::kFloat32, ir::Shape{Dim::symbol("s"), Dim(4)});
  auto table = ir::Tensor::allocate(DType::kFloat32, {9, 4});
  std::fill_n(table->mutable_data_as<float>(), 36, 0.5f);
  Value* t = node(g, "Transpose", {g.add_constant("table", ir::Constant::from_tensor(*table))},
                  {{"perm", std::vector<int64_t>{1, 0}}});
  g.add_output(node(g, "MatMul", {x, t}));
  ASSERT_TRUE(*fold_weight_transpose(g));
  EXPECT_EQ(count(g, "Transpose"), 0u);
  EXPECT_EQ(count(g, "FusedMatMul"), 1u);
}

}  // namespace
}  // namespace decant::passes
