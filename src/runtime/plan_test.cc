#include "runtime/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace decant::runtime
