#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/counting_allocator.h"
#include "app/tiny_llama.h"
#include "ir/op.h"
#include "passes/passes.h"
#include "runtime/session.h"

namespace decant::app {
namespace {

using models::CacheForm;
using ::testing::HasSubstr;

std::unique_ptr<runtime::Session> open(std::unique_ptr<ir::Graph> graph, int64_t capacity = 32,
                                       int threads = 1) {
  const Status optimized = passes::optimize_for_generation(*graph);
  EXPECT_TRUE(optimized.ok()) << optimized.to_string();
  auto engine = runtime::Engine::create(threads, "");
  auto plan = runtime::Plan::compile(std::move(graph), *engine);
  EXPECT_TRUE(plan.ok()) << plan.status().to_string();
  auto session = runtime::Session::create(*std::move(plan), capacity, 32);
  EXPECT_TRUE(session.ok()) << session.status().to_string();
  return *std::move(session);
}

/// Logits of the last of `ids` from the graph without a cache on the reference kernels.
std::vector<float> reference_logits(const std::vector<int64_t>& ids) {
  auto graph = testing::capture_tiny(CacheForm::kNone);
  std::vector<int64_t> ones(ids.size(), 1), positions;
  for (size_t i = 0; i < ids.size(); ++i) positions.push_back(static_cast<int64_t>(i));
  auto row = [&](const std::vector<int64_t>& v) {
    return ir::Tensor::vector(v).reshaped({1, static_cast<int64_t>(v.size())});
  };
  const ir::Tensor inputs[] = {row(ids), row(ones), row(positions)};
  auto out = ir::evaluate_graph(*graph, inputs);
  EXPECT_TRUE(out.ok()) << out.status().to_string();
  const ir::Tensor& logits = (*out)[0];
  const int64_t vocabulary = logits.dims()[2];
  std::vector<float> last;
  for (int64_t i = 0; i < vocabulary; ++i)
    last.push_back(static_cast<float>(logits.double_at(logits.elements() - vocabulary + i)));
  return last;
}

void expect_near(std::span<const float> got, const std::vector<float>& want, float tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], tolerance) << "at " << i;
}

const std::vector<int64_t> kIds = {5, 17, 3, 88, 41, 9, 60, 2, 33};

class CacheForms : public ::testing::TestWithParam<CacheForm> {};

TEST_P(CacheForms, PromptThenStepsEqualTheReference) {
  auto session = open(testing::capture_tiny(GetParam()));
  const std::vector<size_t> steps = {4, 1, 3, 1};
  size_t at = 0;
  for (size_t n : steps) {
    const Status s = session->append(std::span(kIds).subspan(at, n));
    ASSERT_TRUE(s.ok()) << s.to_string();
    at += n;
    expect_near(session->logits(),
                reference_logits({kIds.begin(), kIds.begin() + static_cast<std::ptrdiff_t>(at)}), 2e-4f);
  }
}

TEST_P(CacheForms, RewindEqualsAFreshRun) {
  auto session = open(testing::capture_tiny(GetParam()));
  ASSERT_TRUE(session->append(kIds).ok());
  ASSERT_TRUE(session->rewind(3).ok());
  const std::vector<int64_t> other = {70, 71};
  ASSERT_TRUE(session->append(std::span(other).first(1)).ok());
  ASSERT_TRUE(session->rewind(3).ok());
  ASSERT_TRUE(session->append(std::span(other).first(1)).ok());
  ASSERT_TRUE(session->append(std::span(other).last(1)).ok());
  expect_near(session->logits(), reference_logits({kIds[0], kIds[1], kIds[2], 70, 71}), 2e-4f);
}

INSTANTIATE_TEST_SUITE_P(All, CacheForms,
                         ::testing::Values(CacheForm::kNone, CacheForm::kDynamic, CacheForm::kStatic));

TEST(Decoding, EverythingRunsOnFastKernels) {
  for (CacheForm form : {CacheForm::kDynamic, CacheForm::kStatic}) {
    auto session = open(testing::capture_tiny(form));
    EXPECT_THAT(session->plan().reference_steps(), ::testing::IsEmpty());
    EXPECT_TRUE(session->in_place());
  }
}

TEST(Decoding, AStepNeitherAllocatesNorMovesTheCache) {
  for (CacheForm form : {CacheForm::kDynamic, CacheForm::kStatic}) {
    auto session = open(testing::capture_tiny(form));
    ASSERT_TRUE(session->append(std::span(kIds).first(3)).ok());
    ASSERT_TRUE(session->append(std::span(kIds).subspan(3, 1)).ok());
    const int64_t before = testing::allocation_count();
    for (size_t i = 4; i < kIds.size(); ++i) ASSERT_TRUE(session->append(std::span(kIds).subspan(i, 1)).ok());
    EXPECT_EQ(testing::allocation_count() - before, 0);
  }
}

TEST(Decoding, CapacityIsAnErrorThatSaysWhatToDo) {
  auto session = open(testing::capture_tiny(CacheForm::kStatic), 6);
  const Status s = session->append(kIds);
  EXPECT_FALSE(s.ok());
  EXPECT_THAT(s.message(), HasSubstr("--max-cache-len"));
  ASSERT_TRUE(session->append(std::span(kIds).first(6)).ok());
  EXPECT_FALSE(session->append(std::span(kIds).first(1)).ok());
  EXPECT_EQ(session->length(), 6);
}

TEST(Decoding, HalfPrecisionKeepsItsCacheAndComesClose) {
  const std::vector<float> want = reference_logits(kIds);
  for (DType dtype : {DType::kBFloat16, DType::kFloat16}) {
    for (CacheForm form : {CacheForm::kDynamic, CacheForm::kStatic}) {
      auto session = open(testing::capture_tiny(form, dtype));
      ASSERT_TRUE(session->append(std::span(kIds).first(5)).ok());
      ASSERT_TRUE(session->append(std::span(kIds).subspan(5)).ok());
      EXPECT_THAT(session->plan().reference_steps(), ::testing::IsEmpty());
      EXPECT_EQ(session->state_bytes_per_position(), 2 * 2 * 2 * 8 * 2);
      expect_near(session->logits(), want, dtype == DType::kBFloat16 ? 0.15f : 0.02f);
    }
  }
}

TEST(Decoding, TwoThreadsGiveTheSameIds) {
  auto one = open(testing::capture_tiny(CacheForm::kStatic), 32, 1),
       two = open(testing::capture_tiny(CacheForm::kStatic), 32, 2);
  ASSERT_TRUE(one->append(kIds).ok());
  ASSERT_TRUE(two->append(kIds).ok());
  expect_near(two->logits(), {one->logits().begin(), one->logits().end()}, 1e-5f);
}

}  // namespace
}  // namespace decant::app
