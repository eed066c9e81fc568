#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "ir/op.h"
#include "runtime/plan.h"

namespace decant::runtime {
namespace {

using ir::Dim;
using ir::Graph;
using ir::Shape;
using ir::Value;

ir::Tensor noise(std::vector<int64_t> dims, int seed) {
  ir::Tensor t = *ir::Tensor::allocate(DType::kFloat32, std::move(dims));
  for (int64_t i = 0; i < t.elements(); ++i) {
    t.mutable_data_as<float>()[i] =
        static_cast<float>(std::sin(static_cast<double>(i * 37 + seed * 101) * 0.7));
  }
  return t;
}

/// Builds one graph with input "x" twice, runs it with fast kernels only and with reference kernels, and
/// compares.
void agree(std::vector<int64_t> dims, const std::function<Value*(Graph&, Value*)>& build) {
  const ir::Tensor input = noise(dims, 1);
  std::vector<std::vector<float>> results;
  for (const bool reference : {false, true}) {
    auto g = std::make_unique<Graph>();
    Shape shape;
    for (size_t i = 0; i < dims.size(); ++i) {
      shape.push_back(i == 1 ? Dim(dims[i]) : Dim::symbol("d" + std::to_string(i)));
    }
    g->add_output(build(*g, g->add_input("x", DType::kFloat32, shape)));
    const Status typed = ir::infer_types(*g);
    ASSERT_TRUE(typed.ok()) << typed.to_string();
    auto plan = Plan::compile(std::move(g), *Engine::create(2, ""), {.reference = reference});
    ASSERT_TRUE(plan.ok()) << plan.status().to_string();
    EXPECT_EQ((*plan)->reference_steps().empty(), !reference);
    const Arg arg = {input.dtype(), const_cast<void*>(input.data()), input.dims().data(),
                     static_cast<int32_t>(input.rank()), input.elements()};
    const Status run = (*plan)->run(std::span(&arg, 1));
    ASSERT_TRUE(run.ok()) << run.to_string();
    const Arg& out = (*plan)->output(0);
    results.emplace_back(out.as<float>(), out.as<float>() + out.elements);
  }
  ASSERT_EQ(results[0].size(), results[1].size());
  for (size_t i = 0; i < results[0].size(); ++i) ASSERT_NEAR(results[0][i], results[1][i], 2e-5) << i;
}

Value* weights(Graph& g, std::vector<int64_t> dims, int seed) {
  return g.add_constant(g.unique_name("w"), ir::Constant::from_tensor(noise(std::move(dims), seed)));
}

Value* node(Graph& g, const char* op, std::vector<Value*> inputs,
            std::map<std::string, ir::Attribute, std::less<>> attributes = {}) {
  ir::Node* n = g.add_node(op, std::move(inputs));
  n->attributes = std::move(attributes);
  return n->output(0);
}

using Ints = std::vector<int64_t>;

TEST(ConvKernel, AgreesWithTheReference) {
  agree({2, 6, 9, 11}, [](Graph& g, Value* x) {
    return node(g, "Conv", {x, weights(g, {8, 3, 3, 3}, 2), weights(g, {8}, 3)},
                {{"group", int64_t{2}},
                 {"strides", Ints{2, 1}},
                 {"pads", Ints{1, 0, 2, 1}},
                 {"dilations", Ints{1, 2}}});
  });
  for (const char* mode : {"SAME_UPPER", "SAME_LOWER", "VALID"}) {
    agree({1, 4, 10, 7}, [&](Graph& g, Value* x) {
      return node(g, "Conv", {x, weights(g, {4, 1, 4, 2}, 2)},
                  {{"group", int64_t{4}}, {"strides", Ints{3, 2}}, {"auto_pad", std::string(mode)}});
    });
  }
  agree({3, 5, 40}, [](Graph& g, Value* x) {
    return node(g, "Conv", {x, weights(g, {7, 5, 3}, 2)}, {{"pads", Ints{1, 1}}, {"strides", Ints{2}}});
  });
}

TEST(PoolKernels, AgreeWithTheReference) {
  for (const int64_t ceil : {0, 1}) {
    for (const int64_t count : {0, 1}) {
      agree({2, 3, 11, 8}, [&](Graph& g, Value* x) {
        return node(g, "AveragePool", {x},
                    {{"kernel_shape", Ints{3, 3}},
                     {"strides", Ints{2, 3}},
                     {"pads", Ints{1, 1, 1, 0}},
                     {"ceil_mode", ceil},
                     {"count_include_pad", count}});
      });
    }
    agree({2, 3, 12}, [&](Graph& g, Value* x) {
      return node(g, "MaxPool", {x}, {{"kernel_shape", Ints{3}}, {"strides", Ints{2}}, {"ceil_mode", ceil}});
    });
  }
  agree({2, 3, 4, 5}, [](Graph& g, Value* x) { return node(g, "GlobalAveragePool", {x}); });
  agree({2, 3, 4, 5}, [](Graph& g, Value* x) { return node(g, "GlobalMaxPool", {x}); });
}

TEST(BatchNormalizationKernel, AgreesWithTheReference) {
  agree({2, 3, 4, 5}, [](Graph& g, Value* x) {
    Value* variance = node(g, "Abs", {weights(g, {3}, 5)});
    return node(g, "BatchNormalization",
                {x, weights(g, {3}, 2), weights(g, {3}, 3), weights(g, {3}, 4), variance});
  });
}

TEST(Products, TakeBiases) {
  for (const int64_t rows : {3, 40}) {
    agree({rows, 6}, [](Graph& g, Value* x) {
      Value* a = node(g, "Add", {node(g, "MatMul", {x, weights(g, {6, 5}, 2)}), weights(g, {5}, 3)});
      Value* b = node(g, "Add", {weights(g, {5}, 4), node(g, "MatMul", {x, weights(g, {6, 5}, 5)})});
      return node(g, "Mul", {a, node(g, "Add", {b, node(g, "MatMul", {x, weights(g, {6, 5}, 6)})})});
    });
    agree({rows, 6}, [](Graph& g, Value* x) {
      return node(g, "Gemm", {x, weights(g, {5, 6}, 2), weights(g, {5}, 3)}, {{"transB", int64_t{1}}});
    });
  }
}

TEST(Products, OfRowsWhoseNumberDependsOnDataTakeBiases) {
  auto g = std::make_unique<Graph>();
  Value* x = g->add_input("x", DType::kFloat32, Shape{Dim::symbol("n")});
  Value* rows = node(*g, "Cast", {node(*g, "Transpose", {node(*g, "NonZero", {x})})}, {{"to", int64_t{1}}});
  Value* product = node(*g, "MatMul", {rows, weights(*g, {1, 3}, 2)});
  Value* bias = weights(*g, {3}, 3);
  g->add_output(node(*g, "Add", {product, bias}));
  ASSERT_TRUE(ir::infer_types(*g).ok());
  auto plan = Plan::compile(std::move(g), *Engine::create(1, ""));
  ASSERT_TRUE(plan.ok()) << plan.status().to_string();
  const ir::Tensor input = noise({5}, 1);
  const Arg arg = {input.dtype(), const_cast<void*>(input.data()), input.dims().data(), 1, 5};
  const Status run = (*plan)->run(std::span(&arg, 1));
  ASSERT_TRUE(run.ok()) << run.to_string();
  EXPECT_EQ((*plan)->output(0).elements, 15);
}

TEST(AttentionKernel, TakesJoinedHeads) {
  agree({2, 7, 8}, [](Graph& g, Value* x) {
    Value* q = node(g, "MatMul", {x, weights(g, {8, 16}, 2)});
    Value* k = node(g, "MatMul", {x, weights(g, {8, 8}, 3)});
    Value* v = node(g, "MatMul", {x, weights(g, {8, 6}, 4)});
    return node(g, "Attention", {q, k, v}, {{"q_num_heads", int64_t{4}}, {"kv_num_heads", int64_t{2}}});
  });
}

}  // namespace
}  // namespace decant::runtime
