#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "base/half.h"
#include "formats/onnx/reader.h"
#include "ir/op.h"
#include "passes/passes.h"
#include "runtime/plan.h"

namespace decant::app {
namespace {

namespace fs = std::filesystem;

// testdata/lifting/make_spellings.py wrote the graphs; expected.tsv says what is found in each.
const fs::path kFolder = fs::path(DECANT_SOURCE_DIR) / "testdata/lifting";

struct Sizes {
  int64_t batch, length;
};
constexpr Sizes kSizes[] = {{1, 1}, {2, 5}, {3, 7}, {1, 9}};

const std::vector<std::string> kLifted = {
    "Attention", "Gelu",  "LayerNormalization", "RMSNormalization", "RotaryEmbedding",
    "SwiGLU",    "Swish", "TensorScatter"};

std::string lifted(const ir::Graph& graph) {
  std::map<std::string, int> counts;
  for (const auto& node : graph.nodes()) ++counts[node->op()];
  std::string text;
  for (const std::string& op : kLifted) {
    if (counts.count(op)) text += (text.empty() ? "" : " ") + op + ":" + std::to_string(counts[op]);
  }
  return text.empty() ? "-" : text;
}

/// Noise; masks of random zeros with whole rows of them in batch row 1; positions that do not start at 0.
ir::Tensor input(const ir::Value& v, const Sizes& sizes, std::mt19937& random) {
  std::vector<int64_t> dims;
  for (size_t i = 0; i < v.shape->size(); ++i) {
    const auto known = (*v.shape)[i].as_constant();
    dims.push_back(known ? *known : i == 0 ? sizes.batch : sizes.length);
  }
  auto t = ir::Tensor::allocate(v.dtype, dims);
  EXPECT_TRUE(t.ok());
  for (int64_t i = 0; i < t->elements(); ++i) {
    const int64_t row = dims.empty() ? 0 : i / (t->elements() / dims[0]);
    const int64_t column = dims.empty() ? 0 : i % dims.back();
    if (v.name == "mask") {
      t->mutable_data_as<int64_t>()[i] = row == 1 ? 0 : column % 3 != 0 || random() % 2;
    } else if (v.name == "position_ids") {
      t->mutable_data_as<int64_t>()[i] = 2 * row + column;
    } else if (v.dtype == DType::kInt64) {
      t->mutable_data_as<int64_t>()[i] = 3;
    } else if (v.dtype == DType::kFloat16) {
      t->mutable_data_as<uint16_t>()[i] = float_to_f16(static_cast<float>(random() % 4000) / 1000.0f - 2.0f);
    } else {
      t->mutable_data_as<float>()[i] = static_cast<float>(random() % 4000) / 1000.0f - 2.0f;
    }
  }
  return *t;
}

::testing::AssertionResult close(const ir::Tensor& a, const ir::Tensor& b, double tolerance) {
  if (a.dims() != b.dims()) return ::testing::AssertionFailure() << "other dims";
  for (int64_t i = 0; i < a.elements(); ++i) {
    const double x = a.double_at(i), y = b.double_at(i);
    if (std::isnan(x) && std::isnan(y)) continue;
    if (!(std::abs(x - y) <= tolerance * std::max(1.0, std::abs(x))))
      return ::testing::AssertionFailure() << "element " << i << ": " << x << " and " << y;
  }
  return ::testing::AssertionSuccess();
}

std::map<std::string, std::string> expectations() {
  std::map<std::string, std::string> rows;
  std::ifstream file(kFolder / "expected.tsv");
  std::string name, what;
  while (std::getline(file, name, '\t') && std::getline(file, what)) rows[name] = what;
  return rows;
}

class Spellings : public ::testing::TestWithParam<std::string> {};

TEST_P(Spellings, AreFoundAndKeepTheValues) {
  const std::string path = (kFolder / "spellings" / (GetParam() + ".onnx")).string();
  const auto want = expectations();
  const bool half = GetParam().find("half") != std::string::npos;
  // Beside -1e4 scores keep three digits in the source's f32.
  const bool coarse = GetParam().find("small") != std::string::npos;
  for (const Sizes& sizes : kSizes) {
    auto before = onnx::read_model(path);
    ASSERT_TRUE(before.ok()) << before.status().to_string();
    std::mt19937 random(7);
    std::vector<ir::Tensor> inputs;
    for (const ir::Value* v : (*before)->inputs()) inputs.push_back(input(*v, sizes, random));
    ASSERT_TRUE(ir::infer_types(**before).ok());
    auto expected = ir::evaluate_graph(**before, inputs);
    ASSERT_TRUE(expected.ok()) << expected.status().to_string();

    auto after = onnx::read_model(path);
    ASSERT_TRUE(after.ok());
    const Status optimized = passes::optimize_for_forward(**after);
    ASSERT_TRUE(optimized.ok()) << optimized.to_string();
    ASSERT_TRUE(ir::validate(**after).ok()) << ir::validate(**after).to_string();
    EXPECT_EQ(lifted(**after), want.count(GetParam()) ? want.at(GetParam()) : "no row in expected.tsv");
    auto reference = ir::evaluate_graph(**after, inputs);
    ASSERT_TRUE(reference.ok()) << reference.status().to_string();
    EXPECT_TRUE(close((*expected)[0], (*reference)[0],
                      half     ? 5e-3
                      : coarse ? 1e-3
                               : 2e-5))
        << "batch " << sizes.batch << ", length " << sizes.length;

    auto engine = runtime::Engine::create(2, "");
    ASSERT_TRUE(engine.ok());
    runtime::PlanOptions options;
    options.states_in_place = false;
    auto plan = runtime::Plan::compile(std::move(*after), *engine, options);
    ASSERT_TRUE(plan.ok()) << plan.status().to_string();
    std::vector<runtime::Arg> args;
    for (const ir::Tensor& t : inputs) {
      args.push_back({t.dtype(), const_cast<void*>(t.data()), t.dims().data(), static_cast<int32_t>(t.rank()),
                      t.elements()});
    }
    const Status ran = (*plan)->run(args);
    ASSERT_TRUE(ran.ok()) << ran.to_string();
    const runtime::Arg& out = (*plan)->output(0);
    const ir::Tensor y = ir::Tensor::view(out.dtype, {out.dims, out.dims + out.rank}, out.data, nullptr);
    EXPECT_TRUE(close((*expected)[0], y,
                      half     ? 5e-3
                      : coarse ? 1e-3
                               : 1e-4))
        << "kernels, batch " << sizes.batch << ", length " << sizes.length;
  }
}

std::vector<std::string> names() {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(kFolder / "spellings")) {
    if (entry.path().extension() == ".onnx") found.push_back(entry.path().stem().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

INSTANTIATE_TEST_SUITE_P(Exporters, Spellings, ::testing::ValuesIn(names()), [](const auto& p) {
  std::string name = p.param;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

TEST(SpellingsFolder, HasAFileForEveryRow) {
  for (const auto& [name, what] : expectations())
    EXPECT_TRUE(fs::exists(kFolder / "spellings" / (name + ".onnx"))) << name;
}

}  // namespace
}  // namespace decant::app
