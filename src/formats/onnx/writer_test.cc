#include "formats/onnx/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "base/file_writer.h"
#include "formats/onnx/lower/lower.h"
#include "formats/onnx/reader.h"
#include "ir/op.h"
#include "ir/quantized_constant.h"

namespace decant::onnx {
namespace {

ir::ConstantPtr floats(std::vector<int64_t> dims, float start, float step) {
  ir::Tensor t = *ir::Tensor::allocate(DType::kFloat32, std::move(dims));
  for (int64_t i = 0; i < t.elements(); ++i) {
    t.mutable_data_as<float>()[i] = start + step * static_cast<float>(i * 7 % 23);
  }
  return ir::Constant::from_tensor(t);
}

class OnnxWriter : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("onnx_writer_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name = "model.onnx") { return (folder_ / name).string(); }
  std::filesystem::path folder_;
};

TEST_F(OnnxWriter, RoundTripIsEqual) {
  ir::Graph graph;
  graph.name = "round trip";
  ir::Value* x = graph.add_input("x", DType::kFloat32, ir::Shape{ir::Dim::symbol("batch"), ir::Dim(20)});
  const ir::ConstantPtr weight = floats({20, 20}, -1, 0.1f);
  ir::Value* h = graph.add_node("MatMul", {x, graph.add_constant("w", weight)}, 1, "first")->output(0);
  ir::Value* y = graph.add_node("MatMul", {h, graph.add_constant("tied", weight)}, 1, "second")->output(0);
  y->name = "logits";
  graph.add_output(y);
  ASSERT_TRUE(ir::infer_types(graph).ok());
  WriteOptions options;
  options.external_data_name = "model.onnx_data";
  const Status written = write_model(graph, path(), options);
  ASSERT_TRUE(written.ok()) << written.to_string();
  EXPECT_EQ(std::filesystem::file_size(path("model.onnx_data")), 20u * 20 * 4);  // shared weights once
  auto back = read_model(path());
  ASSERT_TRUE(back.ok()) << back.status().to_string();
  ASSERT_TRUE(ir::infer_types(**back).ok());
  EXPECT_EQ((*back)->nodes()[0]->input(1), (*back)->nodes()[1]->input(1));

  const std::string once = ir::dump(**back), first = *read_file(path());
  ASSERT_TRUE(write_model(**back, path(), options).ok());
  EXPECT_EQ(*read_file(path()), first);  // deterministic, and stable over a round trip
  auto again = read_model(path());
  ASSERT_TRUE(again.ok());
  ASSERT_TRUE(ir::infer_types(**again).ok());
  EXPECT_EQ(ir::dump(**again), once);
}

TEST_F(OnnxWriter, KeepsScalarsAndUnknownDims) {
  ir::Graph graph;
  ir::Value* scalar = graph.add_input("scalar", DType::kFloat32, ir::Shape{});
  ir::Value* x =
      graph.add_input("x", DType::kFloat32, ir::Shape{ir::Dim(4), graph.fresh_symbol("x"), ir::Dim(3)});
  graph.add_input("any", DType::kInt64, std::nullopt);
  graph.add_output(graph.add_node("Add", {x, scalar}, 1, "sum")->output(0));
  ASSERT_TRUE(ir::infer_types(graph).ok());
  ASSERT_TRUE(write_model(graph, path()).ok());
  auto back = read_model(path());
  ASSERT_TRUE(back.ok()) << back.status().to_string();
  const auto& inputs = (*back)->inputs();
  ASSERT_TRUE(inputs[0]->shape && inputs[1]->shape);
  EXPECT_EQ(inputs[0]->shape->size(), 0u);
  ASSERT_EQ(inputs[1]->shape->size(), 3u);
  EXPECT_FALSE((*inputs[1]->shape)[1].is_constant());
  EXPECT_FALSE(inputs[2]->shape);
}

TEST_F(OnnxWriter, InfoAndErrors) {
  ir::Graph graph;
  ir::Value* x = graph.add_input("x", DType::kFloat32, ir::Shape{ir::Dim(4)});
  graph.add_output(graph.add_node("Swish", {x}, 1, "act")->output(0));
  graph.outputs()[0]->dtype = DType::kFloat32;
  EXPECT_THAT(write_model(graph, path()).to_string(), ::testing::HasSubstr("'act'"));
  EXPECT_FALSE(std::filesystem::exists(path()));
  WriteOptions options;
  options.opset = 24;
  ASSERT_TRUE(write_model(graph, path(), options).ok());
  auto info = read_model_info(path());
  ASSERT_TRUE(info.ok()) << info.status().to_string();
  EXPECT_EQ(info->opset_imports.at(""), 24);
  EXPECT_EQ(info->producer, "decant");
  options.external_data_name = "../escape";
  EXPECT_EQ(write_model(graph, path(), options).code(), StatusCode::kInvalidArgument);
}

/// Builds one operator, and compares the reference result before and after lowering.
template <typename Build>
void check_lowering(const Build& build, const std::vector<ir::Tensor>& inputs, int opset,
                    double tolerance = 1e-5) {
  ir::Graph plain, lowered;
  build(plain);
  build(lowered);
  const Status typed = ir::infer_types(plain);
  ASSERT_TRUE(typed.ok()) << typed.to_string();
  ASSERT_TRUE(ir::infer_types(lowered).ok());
  const Status status = lower_to_opset(lowered, opset);
  ASSERT_TRUE(status.ok()) << status.to_string();
  auto a = ir::evaluate_graph(plain, inputs);
  auto b = ir::evaluate_graph(lowered, inputs);
  ASSERT_TRUE(a.ok()) << a.status().to_string();
  ASSERT_TRUE(b.ok()) << b.status().to_string();
  ASSERT_EQ((*a)[0].dims(), (*b)[0].dims());
  EXPECT_EQ(plain.outputs()[0]->name, lowered.outputs()[0]->name);
  for (int64_t i = 0; i < (*a)[0].elements(); ++i)
    ASSERT_NEAR((*a)[0].double_at(i), (*b)[0].double_at(i), tolerance) << i;
}

ir::Shape shape_of(const ir::Tensor& t) { return ir::Shape(t.dims().begin(), t.dims().end()); }

TEST(OnnxLowering, RmsNormalization) {
  const ir::Tensor x = floats({2, 3, 8}, -1, 0.2f)->tensor();
  check_lowering(
      [&](ir::Graph& g) {
        ir::Value* in = g.add_input("x", DType::kFloat32, shape_of(x));
        ir::Node* n =
            g.add_node("RMSNormalization", {in, g.add_constant("w", floats({8}, 1, 0.1f))}, 1, "norm");
        n->attributes["epsilon"] = 1e-5f;
        g.add_output(n->output(0));
      },
      {x}, 18);
}

TEST(OnnxLowering, RotaryEmbedding) {
  const ir::Tensor x = floats({2, 2, 3, 8}, -1, 0.2f)->tensor();
  for (const int64_t interleaved : {0, 1}) {
    for (const int64_t partial : {0, 4}) {
      check_lowering(
          [&](ir::Graph& g) {
            ir::Value* in = g.add_input("x", DType::kFloat32, shape_of(x));
            const int64_t half = partial ? 2 : 4;
            ir::Node* n = g.add_node("RotaryEmbedding",
                                     {in, g.add_constant("cos", floats({2, 3, half}, -1, 0.09f)),
                                      g.add_constant("sin", floats({2, 3, half}, 1, -0.08f))},
                                     1, "rope");
            n->attributes["interleaved"] = interleaved;
            n->attributes["rotary_embedding_dim"] = partial;
            g.add_output(n->output(0));
          },
          {x}, 18);
    }
  }
}

TEST(OnnxLowering, AttentionWithGroupsAndMasks) {
  const ir::Tensor q = floats({2, 4, 3, 8}, -1, 0.2f)->tensor(), k = floats({2, 2, 5, 8}, 1, -0.1f)->tensor();
  for (const bool causal : {false, true}) {
    check_lowering(
        [&](ir::Graph& g) {
          ir::Value* in = g.add_input("q", DType::kFloat32, shape_of(q));
          ir::Value* keys = g.add_input("k", DType::kFloat32, shape_of(k));
          std::vector<ir::Value*> inputs = {in, keys, keys};
          if (!causal) inputs.push_back(g.add_constant("mask", floats({2, 1, 3, 5}, -1, 0.3f)));
          ir::Node* n = g.add_node("Attention", inputs, 1, "attn");
          n->attributes["is_causal"] = static_cast<int64_t>(causal);
          g.add_output(n->output(0));
        },
        {q, k}, 18);
  }
}

TEST(OnnxLowering, TensorScatterAndActivations) {
  const ir::Tensor past = floats({2, 2, 6, 4}, 0, 1)->tensor(),
                   update = floats({2, 2, 2, 4}, -1, -1)->tensor();
  check_lowering(
      [&](ir::Graph& g) {
        ir::Value* p = g.add_input("past", DType::kFloat32, shape_of(past));
        ir::Value* u = g.add_input("update", DType::kFloat32, shape_of(update));
        const std::vector<int64_t> at = {3, 1};
        ir::Value* w = g.add_constant("at", ir::Constant::from_tensor(ir::Tensor::vector(at)));
        ir::Node* n = g.add_node("TensorScatter", {p, u, w}, 1, "scatter");
        n->attributes["axis"] = int64_t{2};
        g.add_output(n->output(0));
      },
      {past, update}, 18);
  for (const char* op : {"Swish", "Gelu"}) {
    check_lowering(
        [&](ir::Graph& g) {
          g.add_output(
              g.add_node(op, {g.add_input("x", DType::kFloat32, shape_of(update))}, 1, "act")->output(0));
        },
        {update}, 18);
  }
}

/// Ids to logits through a table that is also the head; weights of few bits, rows of 40 in blocks of 32.
void build_tied(ir::Graph& g, const ir::Quantization& how) {
  const auto rounded = [&](int64_t rows, float start) {
    return ir::quantized_constant(floats({rows, 40}, start, 0.1f), how, "w", nullptr).constant;
  };
  ir::Value* ids = g.add_input("ids", DType::kInt64, ir::Shape{ir::Dim(2)});
  ir::Value* table = g.add_constant("table", rounded(50, -1));
  ir::Value* x = g.add_node("Gather", {table, ids}, 1, "embed")->output(0);
  x = g.add_node("MatMul", {x, g.add_constant("w", ir::transpose_constant(rounded(40, -0.5f)))}, 1, "mix")
          ->output(0);
  ir::Value* head = g.add_node("Transpose", {table}, 1, "turn")->output(0);
  ir::Value* y = g.add_node("MatMul", {x, head}, 1, "head")->output(0);
  y->name = "logits";
  g.add_output(y);
}

TEST_F(OnnxWriter, PackedWeightsAreWrittenPackedAndOnce) {
  const std::vector<ir::Tensor> inputs = {ir::Tensor::vector(std::vector<int64_t>{3, 49})};
  for (const int bits : {4, 8}) {
    for (const bool zeros : {false, true}) {
      const ir::Quantization how{bits, 32, zeros};
      ir::Graph plain, lowered;
      build_tied(plain, how);
      build_tied(lowered, how);
      ASSERT_TRUE(ir::infer_types(plain).ok());
      ASSERT_TRUE(ir::infer_types(lowered).ok());
      ASSERT_TRUE(lower_packed_weights(lowered, 4).ok());
      ASSERT_TRUE(lower_to_opset(lowered, 18).ok());
      WriteOptions options;
      options.external_data_name = "packed.data";
      const Status written = write_model(lowered, path(), options);
      ASSERT_TRUE(written.ok()) << written.to_string();
      // 50 and 40 rows of two blocks; the few zero points stand in the model itself.
      EXPECT_LT(std::filesystem::file_size(path("packed.data")) + std::filesystem::file_size(path()),
                90u * 2 * static_cast<size_t>(4 * bits + 4) + 4096u * 2);
      auto back = read_model(path());
      ASSERT_TRUE(back.ok()) << back.status().to_string();
      ASSERT_TRUE(ir::infer_types(**back).ok());
      auto a = ir::evaluate_graph(plain, inputs), b = ir::evaluate_graph(**back, inputs);
      ASSERT_TRUE(a.ok()) << a.status().to_string();
      ASSERT_TRUE(b.ok()) << b.status().to_string();
      ASSERT_EQ((*a)[0].dims(), (*b)[0].dims());
      for (int64_t i = 0; i < (*a)[0].elements(); ++i)
        ASSERT_NEAR((*a)[0].double_at(i), (*b)[0].double_at(i), 1e-4) << i;
    }
  }
}

TEST(OnnxLowering, FusedMatMul) {
  const ir::Tensor x = floats({2, 3, 8}, -1, 0.2f)->tensor();
  for (const int64_t across : {0, 1}) {
    check_lowering(
        [&](ir::Graph& g) {
          ir::Value* in = g.add_input("x", DType::kFloat32, shape_of(x));
          ir::Node* n = g.add_node("FusedMatMul", {in, g.add_constant("w", floats({8, 8}, 1, 0.1f))}, 1,
                                   "product", "com.microsoft");
          n->attributes["transB"] = across;
          n->attributes["alpha"] = 0.5f;
          g.add_output(n->output(0));
        },
        {x}, 18);
  }
}

}  // namespace
}  // namespace decant::onnx
