#include <cmath>

#include <gtest/gtest.h>

#include "ir/op.h"

namespace decant::ir {
namespace {

struct Moments {
  double mean, variance, smallest, largest;
};

Moments moments(const Tensor& t) {
  Moments m{0, 0, t.double_at(0), t.double_at(0)};
  const auto n = static_cast<double>(t.elements());
  for (int64_t i = 0; i < t.elements(); ++i) {
    m.mean += t.double_at(i) / n;
    m.smallest = std::fmin(m.smallest, t.double_at(i));
    m.largest = std::fmax(m.largest, t.double_at(i));
  }
  for (int64_t i = 0; i < t.elements(); ++i) m.variance += std::pow(t.double_at(i) - m.mean, 2) / n;
  return m;
}

Tensor draw(const std::string& op, std::map<std::string, Attribute, std::less<>> attributes,
            std::vector<const Tensor*> inputs = {}) {
  Node node(op, "");
  node.attributes = std::move(attributes);
  auto out = evaluate_node(node, inputs);
  EXPECT_TRUE(out.ok()) << out.status().to_string();
  return out.ok() ? (*out)[0] : Tensor::scalar(0.0f);
}

const std::vector<int64_t> kShape = {100, 200};  // 20,000: a mean's deviation is 0.007

TEST(Random, UniformAndNormalHaveTheirMoments) {
  const Moments u = moments(draw("RandomUniform", {{"shape", kShape}, {"low", -1.0f}, {"high", 3.0f}}));
  EXPECT_NEAR(u.mean, 1, 0.05);
  EXPECT_NEAR(u.variance, 16.0 / 12, 0.05);
  EXPECT_GE(u.smallest, -1);
  EXPECT_LE(u.largest, 3);
  const Moments n = moments(draw("RandomNormal", {{"shape", kShape}, {"mean", 2.0f}, {"scale", 0.5f}}));
  EXPECT_NEAR(n.mean, 2, 0.02);
  EXPECT_NEAR(n.variance, 0.25, 0.01);
  EXPECT_GT(n.largest, 3.4);
}

TEST(Random, SeedsRepeatAndCallsWithoutSeedDiffer) {
  const Tensor a = draw("RandomNormal", {{"shape", kShape}, {"seed", 7.0f}});
  const Tensor b = draw("RandomNormal", {{"shape", kShape}, {"seed", 7.0f}});
  const Tensor c = draw("RandomNormal", {{"shape", kShape}, {"seed", 8.0f}});
  EXPECT_EQ(a.double_at(123), b.double_at(123));
  EXPECT_NE(a.double_at(123), c.double_at(123));
  EXPECT_NE(draw("RandomNormal", {{"shape", kShape}}).double_at(5),
            draw("RandomNormal", {{"shape", kShape}}).double_at(5));
}

TEST(Random, BernoulliAndMultinomialFollowTheirProbabilities) {
  auto p = *Tensor::allocate(DType::kFloat32, kShape);
  for (int64_t i = 0; i < p.elements(); ++i) p.mutable_data_as<float>()[i] = 0.3f;
  EXPECT_NEAR(moments(draw("Bernoulli", {}, {&p})).mean, 0.3, 0.02);
  auto logits = *Tensor::allocate(DType::kFloat32, {1, 3});
  for (int i = 0; i < 3; ++i) logits.mutable_data_as<float>()[i] = static_cast<float>(std::log(i + 1.0));
  const Tensor drawn = draw("Multinomial", {{"sample_size", int64_t{20000}}}, {&logits});
  int64_t counts[3] = {};
  for (int64_t i = 0; i < drawn.elements(); ++i) ++counts[drawn.int_at(i)];
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(static_cast<double>(counts[i]) / 20000, (i + 1) / 6.0, 0.02);
}

}  // namespace
}  // namespace decant::ir
