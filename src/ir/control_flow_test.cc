#include "ir/control_flow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/op.h"

namespace decant::ir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ConstantPtr number(int64_t v) { return Constant::from_tensor(Tensor::scalar(v)); }

std::vector<int64_t> ints(const Tensor& t) { return t.to_ints(); }

/// carried: grows by one element (the iteration number) each trip; scan output: its length.
std::shared_ptr<Graph> growing_body(Value* bonus) {
  auto body = std::make_shared<Graph>();
  Value* trip = body->add_input("trip", DType::kUndefined, std::nullopt);
  Value* go_on = body->add_input("go_on", DType::kUndefined, std::nullopt);
  Value* list = body->add_input("list", DType::kUndefined, std::nullopt);
  Value* sum = body->add_node("Add", {trip, bonus})->output(0);
  Value* axes = body->add_constant("axes", Constant::from_tensor(Tensor::vector(std::vector<int64_t>{0})));
  Node* longer = body->add_node("Concat", {list, body->add_node("Unsqueeze", {sum, axes})->output(0)});
  longer->attributes["axis"] = int64_t{0};
  body->add_output(body->add_node("Identity", {go_on})->output(0));
  body->add_output(longer->output(0));
  body->add_output(body->add_node("Size", {longer->output(0)})->output(0));
  return body;
}

TEST(ControlFlow, LoopsCarryValuesThatGrow) {
  Graph g;
  Value* trips = g.add_input("trips", DType::kInt64, Shape{});
  Value* bonus = g.add_input("bonus", DType::kInt64, Shape{});
  Value* start = g.add_input("start", DType::kInt64, Shape{Dim(1)});
  Node* loop = g.add_node("Loop", {trips, nullptr, start}, 2);
  loop->attributes["body"] = growing_body(bonus);
  g.add_output(loop->output(0));
  g.add_output(loop->output(1));
  ASSERT_TRUE(infer_types(g).ok()) << infer_types(g).to_string();
  EXPECT_EQ(loop->output(0)->shape->size(), 1u);
  EXPECT_FALSE((*loop->output(0)->shape)[0].is_constant());
  ASSERT_TRUE(validate(g).ok()) << validate(g).to_string();
  const auto run = [&](int64_t n) {
    return *evaluate_graph(g, std::vector<Tensor>{Tensor::scalar(n), Tensor::scalar(int64_t{10}),
                                                  Tensor::vector(std::vector<int64_t>{7})});
  };
  auto out = run(3);
  EXPECT_THAT(ints(out[0]), ElementsAre(7, 10, 11, 12));
  EXPECT_THAT(ints(out[1]), ElementsAre(2, 3, 4));
  out = run(0);
  EXPECT_THAT(ints(out[0]), ElementsAre(7));
  EXPECT_EQ(out[1].dims(), std::vector<int64_t>{0});
}

TEST(ControlFlow, EndlessLoopsEndAtTheDeadline) {
  Graph g;
  Value* start = g.add_input("start", DType::kInt64, Shape{});
  Node* loop = g.add_node("Loop", {g.add_constant("n", number(int64_t{1} << 62)), nullptr, start});
  auto body = std::make_shared<Graph>();
  body->add_input("trip", DType::kInt64, Shape{});
  Value* go_on = body->add_input("go_on", DType::kBool, Shape{});
  Value* x = body->add_input("x", DType::kInt64, Shape{});
  body->add_output(go_on);
  body->add_output(body->add_node("Neg", {x})->output(0));
  loop->attributes["body"] = body;
  g.add_output(loop->output(0));
  ASSERT_TRUE(infer_types(g).ok());
  const auto options = RunOptions::within(std::chrono::milliseconds(20));
  const auto result = evaluate_graph(g, std::vector<Tensor>{Tensor::scalar(int64_t{1})}, options);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), StatusCode::kDeadline);
}

TEST(ControlFlow, DeepLoopsAreTypedInBoundedTime) {
  Graph g;
  Value* start = g.add_input("start", DType::kInt64, Shape{Dim(1), Dim(1)});
  std::shared_ptr<Graph> body;
  for (int depth = 0; depth < 40; ++depth) {
    auto outer = std::make_shared<Graph>();
    outer->add_input("trip", DType::kUndefined, std::nullopt);
    Value* go_on = outer->add_input("go_on", DType::kUndefined, std::nullopt);
    Value* x = outer->add_input("x", DType::kUndefined, std::nullopt);
    Node* node = body ? outer->add_node("Loop", {nullptr, go_on, x}) : outer->add_node("Concat", {x, x});
    if (body) {
      node->attributes["body"] = body;
    } else {
      node->attributes["axis"] = int64_t{0};
    }
    outer->add_output(go_on);
    outer->add_output(node->output(0));
    body = outer;
  }
  Node* loop = g.add_node("Loop", {g.add_constant("n", number(1)), nullptr, start});
  loop->attributes["body"] = body;
  g.add_output(loop->output(0));
  EXPECT_TRUE(infer_types(g).ok()) << infer_types(g).to_string();
}

TEST(ControlFlow, ReplacingReachesOutputsOfBranches) {
  Graph g;
  Value* condition = g.add_input("c", DType::kBool, Shape{});
  Value* x = g.add_input("x", DType::kFloat32, Shape{});
  Node* copy = g.add_node("Identity", {x});
  Node* choice = g.add_node("If", {condition});
  for (const char* name : {"then_branch", "else_branch"}) {
    auto branch = std::make_shared<Graph>();
    branch->add_output(copy->output(0));
    choice->attributes[name] = branch;
  }
  g.add_output(choice->output(0));
  EXPECT_TRUE(copy->output(0)->is_listed());
  g.replace_all_uses(copy->output(0), x);
  EXPECT_EQ(subgraph(*choice, "then_branch")->outputs()[0], x);
  EXPECT_EQ(subgraph(*choice, "else_branch")->outputs()[0], x);
  EXPECT_FALSE(copy->output(0)->is_listed());
  EXPECT_EQ(g.remove_dead(), 1u);
  EXPECT_THAT(captured_values(*choice), ElementsAre(x));
  g.set_output(0, x);
  g.remove_dead();  // with the branches
  EXPECT_TRUE(x->users().empty());
}

TEST(ControlFlow, ScansSliceAndStackAnyAxis) {
  // state: running sum; scanned backwards along axis 1; stacked along axis 1 in reverse.
  Graph g;
  Value* zero = g.add_input("zero", DType::kInt64, Shape{Dim(2)});
  Value* x = g.add_input("x", DType::kInt64, Shape{Dim(2), Dim::symbol("n")});
  Node* scan = g.add_node("Scan", {zero, x}, 2);
  auto body = std::make_shared<Graph>();
  Value* sum = body->add_input("sum", DType::kUndefined, std::nullopt);
  Value* part = body->add_input("part", DType::kUndefined, std::nullopt);
  Value* next = body->add_node("Add", {sum, part})->output(0);
  body->add_output(next);
  body->add_output(next);
  scan->attributes["body"] = body;
  scan->attributes["num_scan_inputs"] = int64_t{1};
  scan->attributes["scan_input_axes"] = std::vector<int64_t>{1};
  scan->attributes["scan_input_directions"] = std::vector<int64_t>{1};
  scan->attributes["scan_output_axes"] = std::vector<int64_t>{-1};
  scan->attributes["scan_output_directions"] = std::vector<int64_t>{1};
  g.add_output(scan->output(0));
  g.add_output(scan->output(1));
  ASSERT_TRUE(infer_types(g).ok()) << infer_types(g).to_string();
  EXPECT_EQ(to_string(*scan->output(1)->shape), "[2, n]");
  const auto out = *evaluate_graph(
      g, std::vector<Tensor>{Tensor::vector(std::vector<int64_t>{0, 0}),
                             Tensor::vector(std::vector<int64_t>{1, 2, 3, 10, 20, 30}).reshaped({2, 3})});
  EXPECT_THAT(ints(out[0]), ElementsAre(6, 60));
  EXPECT_THAT(ints(out[1]), ElementsAre(6, 5, 3, 60, 50, 30));
}

TEST(ControlFlow, SequencesAreTypedApartFromTensors) {
  Graph g;
  Value* x = g.add_input("x", DType::kFloat32, Shape{Dim(2)});
  Value* list = g.add_node("SequenceConstruct", {x, x})->output(0);
  g.add_output(g.add_node("Neg", {list}, 1, "negative")->output(0));
  const Status s = infer_types(g);
  ASSERT_FALSE(s.ok());
  EXPECT_THAT(s.message(), HasSubstr("sequence"));
  EXPECT_THAT(s.message(), HasSubstr("negative"));
}

TEST(ControlFlow, SmallTypesReachOnlyOpsThatKnowThem) {
  Graph g;
  Value* x = g.add_input("x", DType::kInt4, Shape{Dim(2)});
  g.add_output(g.add_node("Neg", {x}, 1, "negative")->output(0));
  EXPECT_THAT(infer_types(g).message(), HasSubstr("int4"));
}

}  // namespace
}  // namespace decant::ir
