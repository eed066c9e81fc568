#include "passes/quantize_weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "ir/packed_constant.h"
#include "passes/match.h"

namespace decant::passes {
namespace {

using ir::Dim;
using ir::Graph;
using ir::Value;

constexpr int64_t kHidden = 64, kWords = 80;

ir::ConstantPtr matrix(int64_t rows, int64_t columns, unsigned seed, float shift = 0) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(shift, 1);
  ir::Tensor t = *ir::Tensor::allocate(DType::kFloat32, {rows, columns});
  for (int64_t i = 0; i < t.elements(); ++i) t.mutable_data_as<float>()[i] = normal(random);
  return ir::Constant::from_tensor(t);
}

Value* node(Graph& g, std::string op, std::vector<Value*> inputs, Attributes attributes = {}) {
  auto n = add_typed(g, std::move(op), std::move(inputs), std::move(attributes));
  EXPECT_TRUE(n.ok()) << n.status().to_string();
  return *n;
}

/// Words and positions to logits: a table that is also the head, one that is not, a product, a Gemm, and a
/// matrix that is added.
void build(Graph& g, float shift = 0) {
  Value* ids = g.add_input("input_ids", DType::kInt64, ir::Shape{Dim(3)});
  Value* positions = g.add_input("position_ids", DType::kInt64, ir::Shape{Dim(3)});
  Value* table = g.add_constant("table", matrix(kWords, kHidden, 1));
  Value* x = node(g, "Add",
                  {node(g, "Gather", {table, ids}),
                   node(g, "Gather", {g.add_constant("places", matrix(32, kHidden, 2)), positions})});
  x = node(g, "MatMul", {x, g.add_constant("product", matrix(kHidden, kHidden, 3, shift))});
  x = node(
      g, "Gemm",
      {x, g.add_constant("gemm", matrix(kHidden, kHidden, 4)), g.add_constant("bias", matrix(1, kHidden, 5))},
      {{"transB", int64_t{1}}});
  x = node(g, "Add", {x, g.add_constant("added", matrix(3, kHidden, 6))});
  Value* head = node(g, "Transpose", {table}, {{"perm", std::vector<int64_t>{1, 0}}});
  g.add_output(node(g, "MatMul", {x, head}));
}

std::vector<double> run(const Graph& g) {
  ir::Tensor ids = ir::Tensor::vector(std::vector<int64_t>{3, 70, 41}),
             positions = ir::Tensor::vector(std::vector<int64_t>{0, 1, 2});
  auto out = ir::evaluate_graph(g, std::vector<ir::Tensor>{ids, positions});
  EXPECT_TRUE(out.ok()) << out.status().to_string();
  std::vector<double> values;
  for (int64_t i = 0; i < (*out)[0].elements(); ++i) values.push_back((*out)[0].double_at(i));
  return values;
}

const QuantizedWeight& find(const std::vector<QuantizedWeight>& all, std::string_view name) {
  for (const QuantizedWeight& w : all) {
    if (w.name == name) return w;
  }
  ADD_FAILURE() << name;
  return all.front();
}

TEST(QuantizeWeights, TakesWeightsAndNothingElse) {
  Graph plain, packed;
  build(plain);
  build(packed);
  auto done = quantize_weights(packed, {.bits = 8});
  ASSERT_TRUE(done.ok()) << done.status().to_string();
  ASSERT_EQ(done->size(), 3u);
  EXPECT_TRUE(find(*done, "table").shared);
  EXPECT_FALSE(find(*done, "product").shared);
  EXPECT_EQ(find(*done, "gemm").columns, kHidden);
  for (const QuantizedWeight& w : *done) {
    EXPECT_EQ(w.bytes_before, w.rows * w.columns * 4);
    EXPECT_EQ(w.bytes_after, w.rows * w.columns * 9 / 8) << w.name;
  }
  const std::vector<double> a = run(plain), b = run(packed);
  double error = 0, signal = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    error += (a[i] - b[i]) * (a[i] - b[i]);
    signal += a[i] * a[i];
  }
  EXPECT_GT(error, 0);
  EXPECT_LT(std::sqrt(error / signal), 0.02);
}

TEST(QuantizeWeights, ZeroPointsWhereTheyPay) {
  Graph even, shifted;
  build(even);
  build(shifted, 3);
  EXPECT_FALSE(find(*quantize_weights(even, {}), "product").zero_points);
  EXPECT_TRUE(find(*quantize_weights(shifted, {}), "product").zero_points);
}

TEST(QuantizeWeights, ABudgetIsSpentNotPassed) {
  int64_t last = 0;
  for (const double bits : {5.2, 6.5, 8.0, 9.5}) {
    Graph g;
    build(g);
    auto done = quantize_weights(g, {.bits_per_weight = bits});
    ASSERT_TRUE(done.ok()) << done.status().to_string();
    int64_t bytes = 0, weights = 0;
    for (const QuantizedWeight& w : *done) {
      bytes += w.bytes_after;
      weights += w.rows * w.columns;
    }
    EXPECT_LE(static_cast<double>(bytes) * 8, bits * static_cast<double>(weights));
    EXPECT_GE(bytes, last);
    last = bytes;
  }
  EXPECT_EQ(last, (kWords + 2 * kHidden) * kHidden * 9 / 8);
  Graph g;
  build(g);
  EXPECT_EQ(quantize_weights(g, {.bits_per_weight = 4.1}).status().code(), StatusCode::kInvalidArgument);
}

TEST(QuantizeWeights, KeepsWhatIsPackedInAsFewBits) {
  for (const int bits : {0, 4, 8}) {
    Graph g;
    build(g);
    ASSERT_TRUE(quantize_weights(g, {.bits = 4}).ok());
    std::vector<ir::ConstantPtr> before;
    for (const auto& v : g.values()) before.push_back(v->constant);
    auto again = quantize_weights(g, {.bits = bits});
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again->size(), 3u);
    for (const QuantizedWeight& w : *again) EXPECT_TRUE(w.kept && w.bits == 4 && !w.matrix);
    for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(g.values()[i]->constant, before[i]);
  }
  Graph g;
  build(g);
  EXPECT_TRUE(quantize_weights(g, {.bits = 0})->empty());
  ASSERT_TRUE(quantize_weights(g, {.bits = 8}).ok());
  const auto narrower = quantize_weights(g, {.bits = 4});
  for (const QuantizedWeight& w : *narrower) EXPECT_FALSE(w.kept);
}

TEST(QuantizeWeights, NamesTheTensorOfANaN) {
  Graph g;
  Value* x = g.add_input("x", DType::kFloat32, ir::Shape{Dim(2), Dim(kHidden)});
  ir::Tensor t = *matrix(kHidden, kHidden, 1)->materialize();
  t.mutable_data_as<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  g.add_output(node(g, "MatMul", {x, g.add_constant("broken", ir::Constant::from_tensor(t))}));
  const Status status = quantize_weights(g, {}).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidModel);
  EXPECT_NE(status.message().find("broken"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace decant::passes
