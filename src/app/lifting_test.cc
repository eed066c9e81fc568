#include <gtest/gtest.h>

#include <map>
#include <random>

#include "app/tiny_llama.h"
#include "formats/onnx/lower/lower.h"
#include "ir/op.h"
#include "passes/passes.h"

namespace decant::app {
namespace {

using models::CacheForm;

constexpr int64_t kBatch = 2, kSequence = 3, kPast = 4, kCapacity = 8;

std::map<std::string, int64_t> count_ops(const ir::Graph& graph) {
  std::map<std::string, int64_t> counts;
  for (const auto& node : graph.nodes()) ++counts[node->op()];
  return counts;
}

ir::Tensor random_floats(std::vector<int64_t> dims, std::mt19937& random) {
  auto t = ir::Tensor::allocate(DType::kFloat32, std::move(dims));
  for (int64_t i = 0; i < t->elements(); ++i)
    t->mutable_data_as<float>()[i] = static_cast<float>(random() % 2000) / 1000.0f - 1.0f;
  return *t;
}

/// Two rows with padding on the left of the second; caches hold kPast positions of noise.
std::vector<ir::Tensor> inputs_for(const ir::Graph& graph, CacheForm form) {
  std::mt19937 random(3);
  const int64_t past = form == CacheForm::kNone ? 0 : kPast;
  const int64_t width = form == CacheForm::kStatic ? kCapacity : past + kSequence;
  std::vector<int64_t> ids, positions, mask;
  for (int64_t b = 0; b < kBatch; ++b) {
    for (int64_t s = 0; s < kSequence; ++s) {
      ids.push_back(static_cast<int64_t>(random() % 90));
      positions.push_back(past + s);
    }
    // The first position of the second row is padding; its own query rows all lie behind it.
    for (int64_t j = 0; j < width; ++j)
      mask.push_back(j < past + kSequence && !(form != CacheForm::kNone && b == 1 && j == 0));
  }
  std::vector<ir::Tensor> out;
  for (const ir::Value* v : graph.inputs()) {
    if (v->name == "input_ids")
      out.push_back(ir::Tensor::vector(ids).reshaped({kBatch, kSequence}));
    else if (v->name == "position_ids")
      out.push_back(ir::Tensor::vector(positions).reshaped({kBatch, kSequence}));
    else if (v->name == "attention_mask")
      out.push_back(ir::Tensor::vector(mask).reshaped({kBatch, width}));
    else if (v->name == "cache_length")
      out.push_back(ir::Tensor::scalar(past));
    else
      out.push_back(random_floats({kBatch, 2, form == CacheForm::kStatic ? kCapacity : past, 8}, random));
  }
  return out;
}

class Lifting : public ::testing::TestWithParam<CacheForm> {};

TEST_P(Lifting, UndoesTheLoweringAndKeepsTheValues) {
  auto graph = testing::capture_tiny(GetParam());
  const auto captured = count_ops(*graph);
  ASSERT_TRUE(onnx::lower_to_opset(*graph, 18).ok());
  // Read back from a file, states and symbol values are not declared.
  graph->states.clear();
  for (ir::Value* v : graph->inputs()) v->elements.reset();
  ASSERT_EQ(count_ops(*graph).count("Attention"), 0u);
  const std::vector<ir::Tensor> inputs = inputs_for(*graph, GetParam());
  auto before = ir::evaluate_graph(*graph, inputs);
  ASSERT_TRUE(before.ok()) << before.status().to_string();

  const Status optimized = passes::optimize_for_forward(*graph);
  ASSERT_TRUE(optimized.ok()) << optimized.to_string();
  ASSERT_TRUE(ir::validate(*graph).ok()) << ir::validate(*graph).to_string();
  const auto lifted = count_ops(*graph);
  for (const char* op : {"Attention", "RMSNormalization", "RotaryEmbedding", "TensorScatter"}) {
    const auto want = captured.find(op);
    if (want == captured.end()) continue;
    EXPECT_EQ(lifted.count(op) ? lifted.at(op) : 0, want->second) << op;
  }
  EXPECT_EQ(lifted.at("SwiGLU"), 2);
  EXPECT_EQ(
      lifted.count("Softmax") + lifted.count("ScatterElements") + lifted.count("Pow") + lifted.count("Split"),
      0u);
  EXPECT_EQ(graph->states.size(), GetParam() == CacheForm::kNone ? 0u : 4u);

  auto after = ir::evaluate_graph(*graph, inputs);
  ASSERT_TRUE(after.ok()) << after.status().to_string();
  ASSERT_EQ(before->size(), after->size());
  for (size_t i = 0; i < before->size(); ++i) {
    ASSERT_EQ((*before)[i].dims(), (*after)[i].dims());
    for (int64_t e = 0; e < (*before)[i].elements(); ++e) {
      ASSERT_NEAR((*before)[i].double_at(e), (*after)[i].double_at(e), 1e-4)
          << graph->outputs()[i]->name << " at " << e;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Lifting,
                         ::testing::Values(CacheForm::kNone, CacheForm::kDynamic, CacheForm::kStatic));

}  // namespace
}  // namespace decant::app
