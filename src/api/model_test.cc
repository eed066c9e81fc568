#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <thread>

#include "app/counting_allocator.h"
#include "app/tiny_llama.h"
#include "base/status.h"
#include "decant/compiled_model.h"
#include "formats/onnx/lower/lower.h"
#include "formats/onnx/writer.h"
#include "ir/op.h"

namespace decant {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kCapacity = 32, kLayers = 2, kHeads = 2, kChannels = 8, kVocabulary = 96;

class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              (std::string("decant_api_") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(ir::Graph& graph, int opset = 24, bool lower = true) {
    const std::string path = (folder_ / "model.onnx").string();
    Status s = lower ? onnx::lower_to_opset(graph, opset) : ok_status();
    EXPECT_TRUE(s.ok()) << s.to_string();
    onnx::WriteOptions options;
    options.opset = opset;
    s = onnx::write_model(graph, path, options);
    EXPECT_TRUE(s.ok()) << s.to_string();
    return path;
  }
  std::string write_llama(models::CacheForm form) { return write(*app::testing::capture_tiny(form)); }

  Model load(const std::string& path, LoadOptions options = {}) {
    options.threads = 1;
    auto model = Model::load(path, options);
    EXPECT_TRUE(model.ok()) << model.status().to_string();
    return *std::move(model);
  }

  std::filesystem::path folder_;
};

Tensor ints(const std::vector<int64_t>& values, std::vector<int64_t> dims) {
  return *Tensor::copy_of(values, std::move(dims));
}

std::vector<int64_t> count(int64_t n) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < n; ++i) out.push_back(i);
  return out;
}

std::vector<std::string> cache_names() {
  std::vector<std::string> names;
  for (int64_t layer = 0; layer < kLayers; ++layer) {
    names.push_back(std::to_string(layer) + ".key");
    names.push_back(std::to_string(layer) + ".value");
  }
  return names;
}

/// Logits of the last id, from the graph without a cache.
std::vector<float> whole_logits(const Model& model, const std::vector<int64_t>& ids) {
  const auto n = static_cast<int64_t>(ids.size());
  auto out = model.run({{"input_ids", ints(ids, {1, n})},
                        {"attention_mask", ints(std::vector<int64_t>(ids.size(), 1), {1, n})},
                        {"position_ids", ints(count(n), {1, n})}});
  EXPECT_TRUE(out.ok()) << out.status().to_string();
  const auto logits = out->find("logits")->second.as<float>();
  return {logits.end() - kVocabulary, logits.end()};
}

const std::vector<int64_t> kIds = {5, 17, 3, 88, 41, 9, 60, 2, 33};

class ModelTest : public Files {};

TEST_F(ModelTest, DescribesItselfAndRunsByName) {
  const Model model = load(write_llama(models::CacheForm::kNone));
  ASSERT_EQ(model.inputs().size(), 3u);
  EXPECT_EQ(model.inputs()[0].name, "input_ids");
  EXPECT_EQ(model.inputs()[0].type.dtype, DType::kInt64);
  EXPECT_EQ(*model.inputs()[0].type.dims, (std::vector<Dim>{Dim("batch_size"), Dim("sequence_length")}));
  EXPECT_EQ(model.outputs()[0].name, "logits");
  EXPECT_EQ((*model.outputs()[0].type.dims)[2], Dim(kVocabulary));
  EXPECT_EQ(whole_logits(model, kIds).size(), static_cast<size_t>(kVocabulary));
}

TEST_F(ModelTest, NamesWhatIsMissingUnknownOrMisshapen) {
  const Model model = load(write_llama(models::CacheForm::kNone));
  auto missing = model.run({{"input_ids", ints({1}, {1, 1})}});
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(missing.status().message(), AllOf(HasSubstr("'attention_mask'"), HasSubstr("'position_ids'")));
  auto unknown = model.run({{"tokens", ints({1}, {1, 1})}});
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.status().message(), AllOf(HasSubstr("'tokens'"), HasSubstr("'input_ids'")));
  auto shape = model.run({{"input_ids", ints({1, 2}, {1, 2})},
                          {"attention_mask", ints({1}, {1, 1})},
                          {"position_ids", ints({0, 1}, {1, 2})}});
  ASSERT_FALSE(shape.ok());
  EXPECT_EQ(shape.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(shape.status().message(), HasSubstr("'attention_mask'"));
}

/// A caller's own buffers: filled to the brim with NaN, which any read of an unfilled position would show.
struct Caches {
  std::vector<Tensor> tensors;
  Caches() {
    for (size_t i = 0; i < cache_names().size(); ++i) {
      tensors.push_back(*Tensor::zeros(DType::kFloat32, {1, kHeads, kCapacity, kChannels}));
      for (float& x : tensors.back().mutable_as<float>()) x = std::numeric_limits<float>::quiet_NaN();
    }
  }
  void bind(Binding& step) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      EXPECT_TRUE(step.set_input("past_key_values." + cache_names()[i], tensors[i]).ok());
      EXPECT_TRUE(step.set_output("present." + cache_names()[i], tensors[i]).ok());
    }
  }
};

TEST_F(ModelTest, StaticCachesStayWithTheCaller) {
  const Model whole = load(write_llama(models::CacheForm::kNone));
  const Model model = load(write_llama(models::CacheForm::kStatic));
  auto compiled = model.compile();
  ASSERT_TRUE(compiled.ok()) << compiled.status().to_string();
  Binding step = compiled->bind();
  Caches caches;
  caches.bind(step);
  Tensor mask = *Tensor::zeros(DType::kInt64, {1, kCapacity}), length = *Tensor::zeros(DType::kInt64, {});
  ASSERT_TRUE(step.set_input("attention_mask", mask).ok());
  ASSERT_TRUE(step.set_input("cache_length", length).ok());

  int64_t filled = 0;
  const auto run = [&](const Tensor& ids, const Tensor& positions) {
    length.mutable_as<int64_t>()[0] = filled;
    for (int64_t i = 0; i < ids.elements(); ++i) {
      const_cast<int64_t*>(positions.as<int64_t>().data())[i] = filled;
      mask.mutable_as<int64_t>()[static_cast<size_t>(filled++)] = 1;
    }
    EXPECT_TRUE(step.set_input("input_ids", ids).ok());
    EXPECT_TRUE(step.set_input("position_ids", positions).ok());
    return step.run();
  };
  const auto expect_logits = [&](const std::vector<int64_t>& ids) {
    const auto want = whole_logits(whole, ids);
    const auto got = step.output("logits").as<float>();
    ASSERT_GE(got.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_NEAR(got[got.size() - want.size() + i], want[i], 1e-4f) << "at " << i;
  };
  std::vector<int64_t> seen(kIds.begin(), kIds.begin() + 4);
  Status s = run(ints(seen, {1, 4}), ints({0, 0, 0, 0}, {1, 4}));
  ASSERT_TRUE(s.ok()) << s.to_string();
  expect_logits(seen);

  Tensor id = ints({0}, {1, 1}), position = ints({0}, {1, 1});
  for (size_t i = 4; i < kIds.size(); ++i) {
    id.mutable_as<int64_t>()[0] = kIds[i];
    seen.push_back(kIds[i]);
    const int64_t before = app::testing::allocation_count();
    s = run(id, position);
    const int64_t after = app::testing::allocation_count();
    ASSERT_TRUE(s.ok()) << s.to_string();
    // The first step of one token sizes its buffers.
    if (i > 4) {
      EXPECT_EQ(after, before) << "step " << i << " allocates";
    }
    expect_logits(seen);
  }
  EXPECT_EQ(compiled->compile_count(), 1);
  for (size_t i = 0; i < caches.tensors.size(); ++i) {
    const std::string name = "present." + cache_names()[i];
    EXPECT_TRUE(step.in_place(name));
    EXPECT_EQ(step.output(name).data, caches.tensors[i].data());
    EXPECT_FALSE(std::isnan(caches.tensors[i].as<float>()[0]));
    EXPECT_TRUE(std::isnan(caches.tensors[i].as<float>()[kChannels * (kCapacity - 1)]))
        << "written past its end";
  }
}

TEST_F(ModelTest, CachesThatAreNotBoundInPlaceAreLeftAlone) {
  const Model model = load(write_llama(models::CacheForm::kStatic));
  auto compiled = model.compile();
  ASSERT_TRUE(compiled.ok()) << compiled.status().to_string();
  Binding step = compiled->bind();
  std::vector<Tensor> caches;
  for (const std::string& name : cache_names()) {
    caches.push_back(*Tensor::zeros(DType::kFloat32, {1, kHeads, kCapacity, kChannels}));
    ASSERT_TRUE(step.set_input("past_key_values." + name, caches.back()).ok());
  }
  Tensor other = *Tensor::zeros(DType::kFloat32, {1, kHeads, kCapacity, kChannels});
  ASSERT_TRUE(step.set_output("present.0.key", other).ok());
  Tensor mask = *Tensor::zeros(DType::kInt64, {1, kCapacity});
  mask.mutable_as<int64_t>()[0] = 1;
  ASSERT_TRUE(step.set_input("attention_mask", mask).ok());
  ASSERT_TRUE(step.set_input("cache_length", *Tensor::zeros(DType::kInt64, {})).ok());
  ASSERT_TRUE(step.set_input("input_ids", ints({7}, {1, 1})).ok());
  ASSERT_TRUE(step.set_input("position_ids", ints({0}, {1, 1})).ok());
  const Status s = step.run();
  ASSERT_TRUE(s.ok()) << s.to_string();
  for (const Tensor& cache : caches) EXPECT_EQ(cache.as<float>()[0], 0.0f);
  EXPECT_NE(other.as<float>()[0], 0.0f);
  EXPECT_EQ(step.output("present.0.key").data, other.data());
  EXPECT_NE(step.output("present.1.key").as<float>()[0], 0.0f);
  EXPECT_FALSE(step.in_place("present.0.key"));
}

TEST_F(ModelTest, GrowingCachesCanBecomeFixedOnes) {
  const Model whole = load(write_llama(models::CacheForm::kNone));
  const Model model = load(write_llama(models::CacheForm::kDynamic));
  CompileOptions options;
  options.fixed_caches = true;
  auto compiled = model.compile(options);
  ASSERT_TRUE(compiled.ok()) << compiled.status().to_string();
  Binding step = compiled->bind();
  Caches caches;
  caches.bind(step);
  Tensor length = *Tensor::zeros(DType::kInt64, {});
  ASSERT_TRUE(step.set_input("cache_length", length).ok());
  std::vector<int64_t> seen;
  for (const int64_t id : kIds) {
    seen.push_back(id);
    const auto n = static_cast<int64_t>(seen.size());
    length.mutable_as<int64_t>()[0] = n - 1;
    ASSERT_TRUE(step.set_input("input_ids", ints({id}, {1, 1})).ok());
    ASSERT_TRUE(step.set_input("position_ids", ints({n - 1}, {1, 1})).ok());
    ASSERT_TRUE(step.set_input("attention_mask", ints(std::vector<int64_t>(seen.size(), 1), {1, n})).ok());
    const Status s = step.run();
    ASSERT_TRUE(s.ok()) << s.to_string();
  }
  const auto want = whole_logits(whole, kIds);
  const auto got = step.output("logits").as<float>();
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-4f) << "at " << i;
  EXPECT_TRUE(step.in_place("present.1.value"));
  EXPECT_EQ(compiled->compile_count(), 1);
}

/// One step of attention over a cache of `capacity` positions, of which the first ones are valid: as many as
/// the input "valid" says, or as the mask over the whole buffer leaves open.
std::unique_ptr<ir::Graph> cached_attention(int64_t capacity, bool masked) {
  auto graph = std::make_unique<ir::Graph>();
  const ir::Shape step = {1, 8, 1, 64}, buffer = {1, 8, capacity, 64};
  ir::Value* x = graph->add_input("x", DType::kFloat32, step);
  ir::Value* at = graph->add_input("at", DType::kInt64, ir::Shape{1});
  ir::Value* open = masked ? graph->add_input("mask", DType::kBool, ir::Shape{1, 1, 1, capacity})
                           : graph->add_input("valid", DType::kInt64, ir::Shape{1});
  std::vector<ir::Value*> present;
  for (const char* part : {"key", "value"}) {
    ir::Value* past = graph->add_input(std::string("past_key_values.0.") + part, DType::kFloat32, buffer);
    ir::Node* scatter = graph->add_node("TensorScatter", {past, x, at});
    scatter->attributes["axis"] = int64_t{2};
    scatter->output(0)->name = std::string("present.0.") + part;
    present.push_back(scatter->output(0));
  }
  std::vector<ir::Value*> inputs = {x, present[0], present[1]};
  if (masked) {
    inputs.push_back(open);
  } else {
    inputs.insert(inputs.end(), {nullptr, nullptr, nullptr, open});
  }
  ir::Node* attention = graph->add_node("Attention", inputs);
  attention->output(0)->name = "y";
  graph->add_output(attention->output(0));
  for (ir::Value* v : present) graph->add_output(v);
  EXPECT_TRUE(ir::infer_types(*graph).ok());
  return graph;
}

TEST_F(ModelTest, AStepCostsWhatIsFilledAndNotTheBuffer) {
  constexpr int64_t kFilled = 101;
  for (const bool masked : {false, true}) {
    std::vector<double> best;
    for (const int64_t capacity : {int64_t{128}, int64_t{32768}}) {
      const Model model = load(write(*cached_attention(capacity, masked)));
      auto compiled = model.compile();
      ASSERT_TRUE(compiled.ok()) << compiled.status().to_string();
      Binding step = compiled->bind();
      for (const char* part : {"key", "value"}) {
        const Tensor cache = *Tensor::zeros(DType::kFloat32, {1, 8, capacity, 64});
        ASSERT_TRUE(step.set_input(std::string("past_key_values.0.") + part, cache).ok());
        ASSERT_TRUE(step.set_output(std::string("present.0.") + part, cache).ok());
      }
      ASSERT_TRUE(step.set_input("x", *Tensor::zeros(DType::kFloat32, {1, 8, 1, 64})).ok());
      ASSERT_TRUE(step.set_input("at", ints({kFilled - 1}, {1})).ok());
      if (masked) {
        Tensor mask = *Tensor::zeros(DType::kBool, {1, 1, 1, capacity});
        for (int64_t i = 0; i < kFilled; ++i) mask.mutable_as<bool>()[static_cast<size_t>(i)] = true;
        ASSERT_TRUE(step.set_input("mask", mask).ok());
      } else {
        ASSERT_TRUE(step.set_input("valid", ints({kFilled}, {1})).ok());
      }
      double fastest = 1e9;
      for (int i = 0; i < 50; ++i) {
        const auto begin = std::chrono::steady_clock::now();
        const Status s = step.run();
        ASSERT_TRUE(s.ok()) << s.to_string();
        fastest = std::min(
            fastest,
            std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
      }
      EXPECT_TRUE(step.in_place("present.0.key"));
      best.push_back(fastest);
    }
    RecordProperty(masked ? "masked" : "counted",
                   std::to_string(best[0]) + " and " + std::to_string(best[1]) + " ms");
    EXPECT_LT(best[1], 4 * best[0] + 0.1) << best[0] << " ms at 128 positions, " << best[1] << " ms at 32768";
  }
}

/// y = use ? -x : |x|
std::unique_ptr<ir::Graph> branching_graph() {
  auto graph = std::make_unique<ir::Graph>();
  ir::Value* x = graph->add_input("x", DType::kFloat32, ir::Shape{ir::Dim::symbol("n")});
  ir::Value* use = graph->add_input("use", DType::kBool, ir::Shape{});
  ir::Node* branch = graph->add_node("If", {use});
  const auto body = [&](const char* op) {
    auto sub = std::make_shared<ir::Graph>();
    ir::Node* node = sub->add_node(op, {x});
    sub->add_output(node->output(0));
    return sub;
  };
  branch->attributes["then_branch"] = body("Neg");
  branch->attributes["else_branch"] = body("Abs");
  branch->output(0)->name = "y";
  graph->add_output(branch->output(0));
  EXPECT_TRUE(ir::infer_types(*graph).ok());
  return graph;
}

TEST_F(ModelTest, OnePlanForEachValueOfAStaticInput) {
  const Model model = load(write(*branching_graph(), 18));
  CompileOptions options;
  options.static_inputs = {"use"};
  auto compiled = model.compile(options);
  ASSERT_TRUE(compiled.ok()) << compiled.status().to_string();
  EXPECT_EQ(compiled->compile_count(), 0);
  const Tensor x = *Tensor::copy_of(std::vector<float>{-2, 3}, {2});
  for (int round = 0; round < 3; ++round) {
    for (const bool use : {true, false}) {
      auto out = compiled->run({{"x", x}, {"use", *Tensor::copy_of(std::span<const bool>(&use, 1), {})}});
      ASSERT_TRUE(out.ok()) << out.status().to_string();
      const auto y = out->find("y")->second.as<float>();
      EXPECT_EQ(y[0], 2.0f);
      EXPECT_EQ(y[1], use ? -3.0f : 3.0f);
    }
  }
  EXPECT_EQ(compiled->compile_count(), 2);
  options.static_inputs = {"used"};
  EXPECT_THAT(model.compile(options).status().message(), AllOf(HasSubstr("'used'"), HasSubstr("'use'")));
}

std::unique_ptr<ir::Graph> custom_graph() {
  auto graph = std::make_unique<ir::Graph>();
  ir::Value* x = graph->add_input("x", DType::kFloat32, ir::Shape{ir::Dim::symbol("n"), 2});
  ir::Node* a = graph->add_node("ScaleRows", {x}, 1, "first", "acme");
  a->attributes["by"] = 2.0f;
  ir::Node* b = graph->add_node("Relu", {a->output(0)});
  ir::Node* c = graph->add_node("Halve", {b->output(0)}, 1, "second", "acme");
  for (ir::Node* node : {a, b, c}) {
    node->output(0)->dtype = DType::kFloat32;
    node->output(0)->shape = x->shape;
  }
  c->output(0)->name = "y";
  graph->add_output(c->output(0));
  return graph;
}

CustomOp scaling(const char* name, float factor) {
  CustomOp op;
  op.domain = "acme";
  op.name = name;
  op.infer = [](const OpTypes& types) {
    types.outputs[0] = types.inputs[0];
    return Status();
  };
  op.compute = [factor](const OpCall& call) {
    const auto x = call.inputs[0].as<float>();
    const auto y = call.outputs[0].as<float>();
    const float by = call.attributes.number("by", factor);
    for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] * by;
    return Status();
  };
  return op;
}

TEST_F(ModelTest, CustomOperatorsRunAndMissingOnesAreAllNamed) {
  const std::string path = write(*custom_graph(), 18, false);
  const auto missing = Model::load(path);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(missing.status().message(), AllOf(HasSubstr("acme::ScaleRows"), HasSubstr("'first'"),
                                                HasSubstr("acme::Halve"), HasSubstr("'second'")));
  LoadOptions options;
  options.custom_ops = {scaling("ScaleRows", 1), scaling("Halve", 0.5f)};
  const Model model = load(path, options);
  EXPECT_EQ((*model.outputs()[0].type.dims)[0], Dim("n"));
  auto out = model.run({{"x", *Tensor::copy_of(std::vector<float>{1, -2, 3, 4}, {2, 2})}});
  ASSERT_TRUE(out.ok()) << out.status().to_string();
  EXPECT_THAT(out->find("y")->second.as<float>(), ::testing::ElementsAre(1, 0, 3, 4));
}

TEST_F(ModelTest, AnErrorOfACustomOperatorNamesItsNode) {
  LoadOptions options;
  options.custom_ops = {scaling("ScaleRows", 1), scaling("Halve", 0.5f)};
  options.custom_ops[1].compute = [](const OpCall&) { return invalid_argument("not today"); };
  const Model model = load(write(*custom_graph(), 18, false), options);
  const auto out = model.run({{"x", *Tensor::copy_of(std::vector<float>{1, 2}, {1, 2})}});
  ASSERT_FALSE(out.ok());
  EXPECT_THAT(out.status().message(), AllOf(HasSubstr("'second'"), HasSubstr("not today")));
}

TEST_F(ModelTest, ARunEndsAtItsDeadlineOrWhenStopped) {
  const Model model = load(write_llama(models::CacheForm::kNone));
  const NamedTensors inputs = {{"input_ids", ints({1}, {1, 1})},
                               {"attention_mask", ints({1}, {1, 1})},
                               {"position_ids", ints({0}, {1, 1})}};
  EXPECT_EQ(model.run(inputs, RunOptions::within(-std::chrono::seconds(1))).status().code(),
            StatusCode::kDeadline);
  std::stop_source source;
  RunOptions options = RunOptions::within(std::chrono::hours(1));
  options.stop = source.get_token();
  EXPECT_TRUE(model.run(inputs, options).ok());
  source.request_stop();
  EXPECT_EQ(model.run(inputs, options).status().code(), StatusCode::kDeadline);
  EXPECT_TRUE(model.run(inputs).ok());
}

TEST(TensorTest, KeepsTheOwnerOfItsMemory) {
  auto owner = std::make_shared<std::vector<float>>(6, 1.5f);
  const std::weak_ptr<std::vector<float>> watch = owner;
  float* data = owner->data();
  Tensor t = *Tensor::borrow(DType::kFloat32, {2, 3}, data, std::move(owner));
  Tensor copy = t;
  t = Tensor();
  EXPECT_FALSE(watch.expired());
  EXPECT_TRUE(copy.writable());
  EXPECT_EQ(copy.as<float>()[5], 1.5f);
  copy = Tensor();
  EXPECT_TRUE(watch.expired());
}

TEST_F(ModelTest, ThreadsThatShareAModelTakeTurns) {
  const Model model = load(write_llama(models::CacheForm::kNone));
  std::vector<std::vector<float>> want, got(4);
  const auto ids_of = [](size_t t) {
    return std::vector<int64_t>(kIds.begin(), kIds.begin() + 3 + static_cast<std::ptrdiff_t>(t));
  };
  for (size_t t = 0; t < got.size(); ++t) want.push_back(whole_logits(model, ids_of(t)));
  std::vector<std::thread> threads;
  for (size_t t = 0; t < got.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 20; ++round) got[t] = whole_logits(model, ids_of(t));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(got, want);
}

TEST_F(ModelTest, ExampleShapesTakeTheMemoryAtOnce) {
  const Model model = load(write_llama(models::CacheForm::kNone));
  CompileOptions options;
  options.example_shapes = {{"input_ids", {1, 16}}, {"attention_mask", {1, 16}}, {"position_ids", {1, 16}}};
  auto compiled = model.compile(options);
  ASSERT_TRUE(compiled.ok()) << compiled.status().to_string();
  options.example_shapes["nope"] = {1};
  EXPECT_FALSE(model.compile(options).ok());
  Binding step = compiled->bind();
  for (const char* name : {"input_ids", "attention_mask", "position_ids"})
    ASSERT_TRUE(step.set_input(name, ints(count(16), {1, 16})).ok());
  const int64_t before = app::testing::allocation_count();
  ASSERT_TRUE(step.run().ok());
  EXPECT_EQ(app::testing::allocation_count(), before);
}

}  // namespace
}  // namespace decant
