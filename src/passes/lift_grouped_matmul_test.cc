#include <gtest/gtest.h>

#include "ir/op.h"
#include "passes/match.h"
#include "passes/passes.h"

namespace decant::passes {
namespace {

using ir::Dim;
using ir::Graph;
using ir::Value;

Value* node(Graph& g, std::string op, std::vector<Value*> inputs, Attributes attributes = {},
            size_t outputs = 1) {
  ir::Node* n = g.add_node(std::move(op), std::move(inputs), outputs);
  n->attributes = std::move(attributes);
  const Status typed = ir::infer_node(g, *n);
  EXPECT_TRUE(typed.ok()) << typed.to_string();
  return n->output(0);
}

Value* integers(Graph& g, std::vector<int64_t> v) {
  return g.add_constant(g.unique_name("c"), ir::Constant::from_tensor(ir::Tensor::vector(v)));
}

Value* integer(Graph& g, int64_t v) {
  return g.add_constant(g.unique_name("c"),
                        ir::Constant::from_tensor(ir::Tensor::vector(std::vector{v}).reshaped({})));
}

Value* floats(Graph& g, std::vector<int64_t> dims, float start, float step) {
  ir::Tensor t = *ir::Tensor::allocate(DType::kFloat32, std::move(dims));
  for (int64_t i = 0; i < t.elements(); ++i)
    t.mutable_data_as<float>()[i] = start + step * static_cast<float>(i);
  return g.add_constant(g.unique_name("w"), ir::Constant::from_tensor(t));
}

/// What torch's exporter makes of two grouped_mm over `groups` groups, one behind the other; `first` is where
/// the first range begins.
std::unique_ptr<Graph> grouped(int64_t groups, int64_t first) {
  auto g = std::make_unique<Graph>();
  const Dim rows = Dim::symbol("rows");
  Value* x = g->add_input("x", DType::kFloat32, ir::Shape{rows, 3});
  Value* group = g->add_input("group", DType::kInt64, ir::Shape{rows});
  Value* ones = node(*g, "Expand", {floats(*g, {}, 1, 0), node(*g, "Shape", {group})});
  Value* counts = node(*g, "ScatterElements", {floats(*g, {groups}, 0, 0), group, ones},
                       {{"axis", int64_t{0}}, {"reduction", std::string("add")}});
  Value* sums = node(*g, "CumSum", {node(*g, "Cast", {counts}, {{"to", int64_t{6}}}), integer(*g, 0)});
  Value* ends = node(*g, "Cast", {sums}, {{"to", int64_t{7}}});
  const auto n = static_cast<size_t>(groups);
  const Attributes by_rows = {{"axis", int64_t{0}}, {"num_outputs", groups}};
  ir::Node* split_ends = node(*g, "Split", {ends}, by_rows, n)->producer;
  std::vector<Value*> ranges;
  Value* begin = integer(*g, first);
  for (size_t i = 0; i < n; ++i) {
    Value* end = node(*g, "Squeeze", {split_ends->output(i), integers(*g, {0})});
    ranges.push_back(node(*g, "Range", {begin, end, integer(*g, 1)}));
    begin = end;
  }
  const auto multiply = [&](Value* rows_of, std::vector<int64_t> weights) {
    ir::Node* split = node(*g, "Split", {floats(*g, std::move(weights), -1, 0.1f)}, by_rows, n)->producer;
    std::vector<Value*> parts;
    for (size_t i = 0; i < n; ++i) {
      Value* taken = node(*g, "Gather", {rows_of, ranges[i]}, {{"axis", int64_t{0}}});
      parts.push_back(
          node(*g, "MatMul", {taken, node(*g, "Squeeze", {split->output(i), integers(*g, {0})})}));
    }
    return node(*g, "Concat", parts, {{"axis", int64_t{0}}});
  };
  g->add_output(multiply(node(*g, "Relu", {multiply(x, {groups, 3, 2})}), {groups, 2, 4}));
  return g;
}

TEST(LiftGroupedMatMul, EqualsTheProductsOfAllGroups) {
  auto g = grouped(4, 0);
  ir::Tensor x = *ir::Tensor::allocate(DType::kFloat32, {5, 3});
  for (int i = 0; i < 15; ++i) x.mutable_data_as<float>()[i] = 0.25f * static_cast<float>(i % 7) - 0.5f;
  const std::vector<ir::Tensor> inputs = {x, ir::Tensor::vector(std::vector<int64_t>{0, 0, 1, 3, 3})};
  const auto before = ir::evaluate_graph(*g, inputs);
  ASSERT_TRUE(before.ok()) << before.status().to_string();
  const auto changed = lift_grouped_matmul(*g);
  ASSERT_TRUE(changed.ok() && *changed);
  size_t products = 0;
  for (const auto& n : g->nodes()) {
    EXPECT_FALSE(n->is("MatMul") || n->is("Split"));
    products += n->op() == "GroupedMatMul";
  }
  EXPECT_EQ(products, 2u);
  const auto after = ir::evaluate_graph(*g, inputs);
  ASSERT_TRUE(after.ok()) << after.status().to_string();
  ASSERT_EQ((*after)[0].dims(), (*before)[0].dims());
  for (int64_t i = 0; i < (*after)[0].elements(); ++i)
    EXPECT_NEAR((*after)[0].double_at(i), (*before)[0].double_at(i), 1e-6);
}

TEST(LiftGroupedMatMul, RowsLeftOutStayLeftOut) {
  auto g = grouped(3, 1);
  const auto changed = lift_grouped_matmul(*g);
  ASSERT_TRUE(changed.ok());
  EXPECT_FALSE(*changed);
}

}  // namespace
}  // namespace decant::passes
