#include "runtime/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ir/op.h"
#include "passes/passes.h"

namespace decant::runtime {
namespace {

using ir::Dim;
using ir::Graph;
using ir::Node;
using ir::Value;
using ::testing::HasSubstr;

std::unique_ptr<Plan> compile(std::unique_ptr<Graph> graph, const PlanOptions& options = {}) {
  EXPECT_TRUE(ir::infer_types(*graph).ok()) << ir::infer_types(*graph).to_string();
  auto engine = Engine::create(1, "");
  auto plan = Plan::compile(std::move(graph), *engine, options);
  EXPECT_TRUE(plan.ok()) << plan.status().to_string();
  return plan.ok() ? *std::move(plan) : nullptr;
}

Arg arg_of(const ir::Tensor& t) {
  return {t.dtype(), const_cast<void*>(t.data()), t.dims().data(), static_cast<int32_t>(t.rank()),
          t.elements()};
}

ir::Tensor floats(std::vector<int64_t> dims) {
  auto t = ir::Tensor::allocate(DType::kFloat32, std::move(dims));
  for (int64_t i = 0; i < t->elements(); ++i) t->mutable_data_as<float>()[i] = static_cast<float>(i);
  return *t;
}

TEST(Plan, NamesTheInputThatDoesNotFit) {
  auto g = std::make_unique<Graph>();
  Value* a = g->add_input("a", DType::kFloat32, ir::Shape{Dim::symbol("n"), Dim(3)});
  Value* b = g->add_input("b", DType::kFloat32, ir::Shape{Dim::symbol("n") + Dim(1), Dim(3)});
  g->add_output(g->add_node("Concat", {a, b})->output(0));
  g->nodes()[0]->attributes["axis"] = int64_t{0};
  auto plan = compile(std::move(g));
  const ir::Tensor two = floats({2, 3}), three = floats({3, 3}), wide = floats({2, 4});
  const Arg good[] = {arg_of(two), arg_of(three)}, short_b[] = {arg_of(two), arg_of(two)},
            wide_a[] = {arg_of(wide), arg_of(three)};
  ASSERT_TRUE(plan->run(good).ok());
  EXPECT_EQ(plan->output(0).dims[0], 5);
  EXPECT_THAT(plan->run(short_b).message(), HasSubstr("'b'"));
  EXPECT_THAT(plan->run(wide_a).message(), HasSubstr("'a'"));
  EXPECT_FALSE(plan->run(std::span(good).first(1)).ok());
  EXPECT_TRUE(plan->run(good).ok());
}

TEST(Plan, DataDependentShapesRunOnReferenceKernels) {
  auto g = std::make_unique<Graph>();
  Value* x = g->add_input("x", DType::kFloat32, ir::Shape{Dim::symbol("n")});
  Node* found = g->add_node("NonZero", {x});
  Node* doubled = g->add_node("Add", {found->output(0), found->output(0)});
  g->add_output(doubled->output(0));
  auto plan = compile(std::move(g));
  const ir::Tensor t = floats({4});
  const Arg args[] = {arg_of(t)};
  ASSERT_TRUE(plan->run(args).ok());
  ASSERT_EQ(plan->output(0).elements, 3);
  EXPECT_EQ(plan->output(0).as<int64_t>()[2], 6);
}

TEST(Plan, ImpossibleReshapesAndProductsAreErrors) {
  auto g = std::make_unique<Graph>();
  Value* x = g->add_input("x", DType::kFloat32, ir::Shape{Dim::symbol("n"), Dim::symbol("k")});
  Value* y = g->add_input("y", DType::kFloat32, ir::Shape{Dim::symbol("m"), Dim(2)});
  g->add_output(g->add_node("MatMul", {x, y})->output(0));
  auto plan = compile(std::move(g));
  const ir::Tensor a = floats({2, 3}), b = floats({4, 2}), c = floats({3, 2});
  const Arg bad[] = {arg_of(a), arg_of(b)}, good[] = {arg_of(a), arg_of(c)};
  EXPECT_FALSE(plan->run(bad).ok());
  ASSERT_TRUE(plan->run(good).ok());
  EXPECT_EQ(plan->output(0).as<float>()[3], 3 * 1 + 4 * 3 + 5 * 5);
}

TEST(Plan, ReferenceAndFastKernelsAgree) {
  for (const bool reference : {false, true}) {
    auto g = std::make_unique<Graph>();
    Value* x = g->add_input("x", DType::kFloat32, ir::Shape{Dim::symbol("n"), Dim(6)});
    Value* w = g->add_constant("w", ir::Constant::from_tensor(floats({6, 5})));
    Value* y = g->add_node("Softmax",
                           {g->add_node("Sigmoid", {g->add_node("MatMul", {x, w})->output(0)})->output(0)})
                   ->output(0);
    g->add_output(y);
    auto plan = compile(std::move(g), {.reference = reference});
    EXPECT_EQ(plan->reference_steps().empty(), !reference);
    auto in = floats({2, 6});
    for (int64_t i = 0; i < 12; ++i) in.mutable_data_as<float>()[i] = 0.01f * static_cast<float>(i - 6);
    const Arg args[] = {arg_of(in)};
    ASSERT_TRUE(plan->run(args).ok());
    double sum = 0;
    for (int64_t i = 0; i < 10; ++i) sum += plan->output(0).as<float>()[i];
    EXPECT_NEAR(sum, 2.0, 1e-5);
  }
}

Graph* loop_body(Node* loop) {
  auto body = std::make_shared<Graph>();
  Graph* raw = body.get();
  loop->attributes["body"] = std::move(body);
  return raw;
}

/// x -> x·w each trip (on fast kernels), with the list of norms so far: its length grows.
std::unique_ptr<Graph> looping_graph() {
  auto g = std::make_unique<Graph>();
  Value* trips = g->add_input("trips", DType::kInt64, ir::Shape{});
  Value* x = g->add_input("x", DType::kFloat32, ir::Shape{Dim::symbol("n"), Dim(3)});
  Value* list = g->add_input("list", DType::kFloat32, ir::Shape{Dim::symbol("m")});
  Value* w = g->add_constant("w", ir::Constant::from_tensor(floats({3, 3})));
  Value* scale = g->add_node("Sigmoid", {x})->output(0);
  Node* loop = g->add_node("Loop", {trips, nullptr, x, list}, 3);
  Graph* body = loop_body(loop);
  body->add_input("trip", DType::kUndefined, std::nullopt);
  Value* go_on = body->add_input("go_on", DType::kUndefined, std::nullopt);
  Value* y = body->add_input("y", DType::kUndefined, std::nullopt);
  Value* seen = body->add_input("seen", DType::kUndefined, std::nullopt);
  Value* product = body->add_node("MatMul", {y, w})->output(0);
  Value* next = body->add_node("Softmax", {body->add_node("Mul", {product, scale})->output(0)})->output(0);
  Value* flat =
      body->add_node("Reshape", {next, body->add_constant("all", ir::Constant::from_tensor(ir::Tensor::vector(
                                                                     std::vector<int64_t>{-1})))})
          ->output(0);
  Node* longer = body->add_node("Concat", {seen, flat});
  longer->attributes["axis"] = int64_t{0};
  body->add_output(go_on);
  body->add_output(next);
  body->add_output(longer->output(0));
  body->add_output(next);
  for (size_t i = 0; i < 3; ++i) g->add_output(loop->output(i));
  return g;
}

void expect_same(const ir::Tensor& a, const ir::Tensor& b) {
  ASSERT_EQ(a.dims(), b.dims());
  ASSERT_EQ(a.dtype(), b.dtype());
  for (int64_t i = 0; i < a.elements(); ++i) EXPECT_NEAR(a.double_at(i), b.double_at(i), 1e-5) << i;
}

TEST(Plan, LoopsEqualTheInterpreter) {
  auto reference = looping_graph();
  ASSERT_TRUE(ir::infer_types(*reference).ok()) << ir::infer_types(*reference).to_string();
  auto plan = compile(looping_graph());
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->reference_steps().empty()) << plan->reference_steps()[0];
  for (const int64_t trips : {3, 0, 1, 5}) {
    for (const int64_t n : {2, 4}) {
      const std::vector<ir::Tensor> in = {ir::Tensor::scalar(trips), floats({n, 3}), floats({1})};
      const auto want = ir::evaluate_graph(*reference, in);
      ASSERT_TRUE(want.ok()) << want.status().to_string();
      const Status s = plan->run_data(std::vector<ir::Datum>(in.begin(), in.end()));
      ASSERT_TRUE(s.ok()) << s.to_string();
      for (size_t i = 0; i < 3; ++i) expect_same(plan->output_datum(i)->tensor(), (*want)[i]);
    }
  }
}

TEST(Plan, LoopsStopAtTheDeadline) {
  auto plan = compile(looping_graph());
  const std::vector<ir::Datum> in = {ir::Tensor::scalar(int64_t{1} << 62), floats({2, 3}), floats({1})};
  const Status s = plan->run_data(in, RunOptions::within(std::chrono::milliseconds(20)));
  EXPECT_EQ(s.code(), StatusCode::kDeadline) << s.to_string();
}

TEST(Plan, BranchesChosenByTheRun) {
  for (const bool reference : {false, true}) {
    auto g = std::make_unique<Graph>();
    Value* c = g->add_input("c", DType::kBool, ir::Shape{});
    Value* x = g->add_input("x", DType::kFloat32, ir::Shape{Dim::symbol("n"), Dim(3)});
    Value* w = g->add_constant("w", ir::Constant::from_tensor(floats({3, 3})));
    Value* before = g->add_node("Sigmoid", {x})->output(0);
    Node* choice = g->add_node("If", {c}, 2);
    auto yes = std::make_shared<Graph>(), no = std::make_shared<Graph>();
    yes->add_output(yes->add_node("MatMul", {before, w})->output(0));
    yes->add_output(before);
    no->add_output(no->add_node("NonZero", {x})->output(0));
    no->nodes()[0]->attributes.clear();
    Node* cast = no->add_node("Cast", {no->outputs()[0]});
    cast->attributes["to"] = int64_t{1};
    no->set_output(0, cast->output(0));
    no->add_output(x);
    choice->attributes["then_branch"] = yes;
    choice->attributes["else_branch"] = no;
    g->add_output(choice->output(0));
    g->add_output(g->add_node("Add", {choice->output(1), choice->output(1)})->output(0));
    auto plan = compile(std::move(g), {.reference = reference});
    ASSERT_TRUE(plan);
    auto flag = ir::Tensor::allocate(DType::kBool, {});
    for (const int64_t n : {2, 3}) {
      for (const uint8_t chosen : {1, 0, 1}) {
        *flag->mutable_data_as<uint8_t>() = chosen;
        const std::vector<ir::Datum> in = {*flag, floats({n, 3})};
        const Status s = plan->run_data(in);
        ASSERT_TRUE(s.ok()) << s.to_string();
        const ir::Tensor first = plan->output_datum(0)->tensor(), second = plan->output_datum(1)->tensor();
        EXPECT_EQ(first.dims(), chosen ? (std::vector<int64_t>{n, 3}) : (std::vector<int64_t>{2, 3 * n - 1}));
        EXPECT_NEAR(second.double_at(1), chosen ? 2 / (1 + std::exp(-1.0)) : 2, 1e-5);
      }
    }
  }
}

TEST(Plan, SequencesPassThrough) {
  auto g = std::make_unique<Graph>();
  Value* list = g->add_input("list", DType::kFloat32, std::nullopt);
  list->kind = ir::ValueKind::kSequence;
  Value* x = g->add_input("x", DType::kFloat32, ir::Shape{Dim(2)});
  Value* more = g->add_node("SequenceInsert", {list, g->add_node("Sigmoid", {x})->output(0)})->output(0);
  g->add_output(more);
  g->add_output(g->add_node("SequenceLength", {more})->output(0));
  auto plan = compile(std::move(g));
  ASSERT_TRUE(plan);
  const std::vector<ir::Datum> in = {ir::Datum::sequence({floats({3})}), floats({2})};
  ASSERT_TRUE(plan->run_data(in).ok());
  const ir::Datum out = *plan->output_datum(0);
  ASSERT_TRUE(out.is_sequence());
  ASSERT_EQ(out.items().size(), 2u);
  EXPECT_EQ(out.items()[0].dims(), std::vector<int64_t>{3});
  EXPECT_NEAR(out.items()[1].double_at(0), 0.5, 1e-6);
  EXPECT_EQ(plan->output(1).as<int64_t>()[0], 2);
  const std::vector<ir::Datum> wrong = {floats({3}), floats({2})};
  EXPECT_THAT(plan->run_data(wrong).message(), HasSubstr("'list'"));
}

}  // namespace
}  // namespace decant::runtime
