#include "ir/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/op.h"

namespace decant::ir {
namespace {

using ::testing::HasSubstr;

ConstantPtr number(float v) { return Constant::from_tensor(Tensor::scalar(v)); }

TEST(Graph, RemovesWhatNothingNeeds) {
  Graph g;
  Value* x = g.add_input("x", DType::kFloat32, Shape{Dim::symbol("n")});
  Node* used = g.add_node("Add", {x, g.add_constant("one", number(1))});
  g.add_node("Mul", {x, g.add_constant("two", number(2))});
  g.add_output(used->output(0));
  EXPECT_EQ(g.remove_dead(), 1u);
  EXPECT_EQ(g.nodes().size(), 1u);
  EXPECT_EQ(g.find_value("two"), nullptr);
  EXPECT_EQ(x->users().size(), 1u);
}

TEST(Graph, SortsAndNamesCycles) {
  Graph g;
  Value* x = g.add_input("x", DType::kFloat32, Shape{});
  Node* late = g.add_node("Neg", {nullptr}, 1, "late");
  Node* early = g.add_node("Abs", {x}, 1, "early");
  late->set_input(0, early->output(0));
  g.add_output(late->output(0));
  ASSERT_TRUE(g.sort().ok());
  EXPECT_EQ(g.nodes()[0].get(), early);
  early->set_input(0, late->output(0));
  const Status s = g.sort();
  ASSERT_FALSE(s.ok());
  EXPECT_THAT(s.message(), HasSubstr("cycle"));
}

TEST(Graph, ReplacingMovesUsersOutputsAndStates) {
  Graph g;
  Value* x = g.add_input("x", DType::kFloat32, Shape{});
  Node* a = g.add_node("Neg", {x});
  Node* c = g.add_node("Abs", {a->output(0)});
  g.add_output(a->output(0));
  g.states.push_back({x, a->output(0)});
  g.replace_all_uses(a->output(0), x);
  EXPECT_EQ(c->input(0), x);
  EXPECT_EQ(g.outputs()[0], x);
  EXPECT_EQ(g.states[0].output, x);
  EXPECT_TRUE(a->output(0)->users().empty());
}

TEST(Graph, ValidateNamesTheFault) {
  Graph g;
  Value* x = g.add_input("x", DType::kFloat32, Shape{});
  Node* node = g.add_node("NoSuchOp", {x}, 1, "odd");
  g.add_output(node->output(0));
  const Status s = validate(g);
  EXPECT_EQ(s.code(), StatusCode::kUnsupported);
  EXPECT_THAT(s.message(), HasSubstr("odd"));
  const Status inferred = infer_types(g);
  EXPECT_THAT(inferred.message(), HasSubstr("NoSuchOp"));
}

TEST(Graph, UniqueNamesStayUnique) {
  Graph g;
  EXPECT_EQ(g.unique_name("a"), "a");
  g.add_input("a", DType::kFloat32, Shape{});
  const std::string second = g.unique_name("a");
  g.add_input(second, DType::kFloat32, Shape{});
  EXPECT_NE(g.unique_name("a"), second);
}

TEST(Constant, TransposesAndCastsByRows) {
  const float values[] = {1, 2, 3, 4, 5, 6};
  auto tensor = Tensor::allocate(DType::kFloat32, {2, 3});
  ASSERT_TRUE(tensor.ok());
  std::copy(std::begin(values), std::end(values), tensor->mutable_data_as<float>());
  const ConstantPtr half = cast_constant(transpose_constant(Constant::from_tensor(*tensor)), DType::kFloat16);
  EXPECT_THAT(half->dims(), ::testing::ElementsAre(3, 2));
  auto all = half->materialize();
  ASSERT_TRUE(all.ok());
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(all->double_at(i), values[(i % 2) * 3 + i / 2]);
  std::vector<std::byte> row(4);
  ASSERT_TRUE(half->read_rows(1, 2, row).ok());
  EXPECT_EQ(Tensor::view(DType::kFloat16, {2}, row.data(), nullptr).double_at(1), 5);
  EXPECT_FALSE(half->read_rows(2, 4, row).ok());
}

TEST(Tensor, RefusesImpossibleSizes) {
  EXPECT_FALSE(Tensor::allocate(DType::kFloat32, {int64_t{1} << 40, int64_t{1} << 40}).ok());
  EXPECT_FALSE(Tensor::allocate(DType::kFloat32, {-1}).ok());
  EXPECT_TRUE(Tensor::allocate(DType::kFloat32, {0, 5}).ok());
}

}  // namespace
}  // namespace decant::ir
