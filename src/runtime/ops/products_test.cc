#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "ir/op.h"
#include "runtime/plan.h"

namespace decant::runtime {
namespace {

using ir::Graph;

ir::Tensor noise(std::vector<int64_t> dims, int seed) {
  ir::Tensor t = *ir::Tensor::allocate(DType::kFloat32, std::move(dims));
  for (int64_t i = 0; i < t.elements(); ++i)
    t.mutable_data_as<float>()[i] =
        static_cast<float>(std::sin(static_cast<double>(i * 37 + seed * 101) * 0.7));
  return t;
}

/// Runs one node on the fast kernel and on the reference kernel. With `constant`, the node has that as its
/// last input.
void agree(const char* op, const char* domain, std::map<std::string, ir::Attribute, std::less<>> attributes,
           const std::vector<ir::Tensor>& inputs, std::optional<ir::Tensor> constant = {}) {
  std::vector<std::vector<float>> results;
  for (const bool reference : {false, true}) {
    auto g = std::make_unique<Graph>();
    std::vector<ir::Value*> values;
    std::vector<Arg> args;
    for (const ir::Tensor& t : inputs) {
      const ir::Shape shape(t.dims().begin(), t.dims().end());
      values.push_back(g->add_input("x" + std::to_string(values.size()), t.dtype(), shape));
      args.push_back({t.dtype(), const_cast<void*>(t.data()), t.dims().data(), static_cast<int32_t>(t.rank()),
                      t.elements()});
    }
    if (constant) values.push_back(g->add_constant("constant", ir::Constant::from_tensor(*constant)));
    ir::Node* node = g->add_node(op, values, 1, "", domain);
    node->attributes = attributes;
    g->add_output(node->output(0));
    const Status typed = ir::infer_types(*g);
    ASSERT_TRUE(typed.ok()) << typed.to_string();
    auto plan = Plan::compile(std::move(g), *Engine::create(2, ""), {.reference = reference});
    ASSERT_TRUE(plan.ok()) << plan.status().to_string();
    ASSERT_EQ((*plan)->reference_steps().empty(), !reference);
    const Status run = (*plan)->run(args);
    ASSERT_TRUE(run.ok()) << run.to_string();
    const Arg& out = (*plan)->output(0);
    results.emplace_back(out.as<float>(), out.as<float>() + out.elements);
  }
  ASSERT_EQ(results[0].size(), results[1].size());
  for (size_t i = 0; i < results[0].size(); ++i) ASSERT_NEAR(results[0][i], results[1][i], 2e-5) << i;
}

TEST(EinsumKernel, AgreesWithTheReference) {
  struct Case {
    const char* equation;
    std::vector<int64_t> a, b;
  };
  for (const Case& c : std::vector<Case>{{"bclhn,bcshn->bclsh", {2, 3, 4, 2, 5}, {2, 3, 6, 2, 5}},
                                         {"bzch,bzhpn->bchpn", {2, 3, 4, 5}, {2, 3, 5, 2, 6}},
                                         {"ij,kj->ki", {3, 4}, {5, 4}},
                                         {"i,j->ij", {3}, {4}},
                                         {"ij,ij->", {3, 4}, {3, 4}},
                                         {"bij,bjk->bik", {1, 3, 4}, {2, 4, 5}},
                                         {"...ij,...jk->...ik", {2, 3, 4}, {1, 4, 5}},
                                         {"bij,bjk->bik", {2, 3, 0}, {2, 0, 5}}}) {
    SCOPED_TRACE(c.equation);
    agree("Einsum", "", {{"equation", std::string(c.equation)}}, {noise(c.a, 1), noise(c.b, 2)});
  }
}

TEST(CumSumKernel, AgreesWithTheReference) {
  for (const int64_t axis : {0, 1, -1}) {
    for (const int64_t flags : {0, 1, 2, 3}) {
      agree("CumSum", "", {{"exclusive", flags & 1}, {"reverse", flags >> 1}},
            {noise({2, 5, 70}, 1), ir::Tensor::vector(std::vector<int64_t>{axis}).reshaped({})});
    }
  }
}

TEST(ReduceKernel, AgreesWithTheReference) {
  for (const std::vector<int64_t>& axes :
       std::vector<std::vector<int64_t>>{{1}, {-2}, {0, 1}, {0}, {2}, {1, 2}}) {
    for (const char* op : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin"})
      agree(op, "", {{"keepdims", int64_t{0}}}, {noise({3, 5, 70}, 1)}, ir::Tensor::vector(axes));
  }
}

TEST(GroupedMatMulKernel, AgreesWithTheReference) {
  const ir::Tensor ends = ir::Tensor::vector(std::vector<int64_t>{2, 2, 12, 13});
  agree("GroupedMatMul", "decant", {}, {noise({13, 5}, 1), noise({4, 5, 3}, 2), ends});
  agree("GroupedMatMul", "decant", {{"transB", int64_t{1}}}, {noise({13, 5}, 1), noise({4, 3, 5}, 2), ends});
}

}  // namespace
}  // namespace decant::runtime
