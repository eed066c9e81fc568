#include "runtime/memory_plan.h"

#include <random>

#include <gtest/gtest.h>

#include "runtime/dim_program.h"

namespace decant::runtime {
namespace {

TEST(MemoryPlan, BuffersAliveAtOnceNeverShareASlot) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<BufferRequest> requests;
    for (int i = 0; i < 60; ++i) {
      const int first = static_cast<int>(random() % 40);
      requests.push_back(
          {first, first + static_cast<int>(random() % 10), static_cast<int64_t>(random() % 1000)});
    }
    int slots = 0;
    const std::vector<int> assigned = assign_slots(requests, &slots);
    for (size_t a = 0; a < requests.size(); ++a) {
      ASSERT_LT(assigned[a], slots);
      for (size_t b = 0; b < a; ++b) {
        const bool together = requests[a].first_step <= requests[b].last_step &&
                              requests[b].first_step <= requests[a].last_step;
        EXPECT_FALSE(together && assigned[a] == assigned[b]);
      }
    }
  }
}

TEST(MemoryPlan, ReusesSlotsOfTheDead) {
  const std::vector<BufferRequest> chain = {{0, 1, 100}, {1, 2, 100}, {2, 3, 100}, {3, 4, 100}};
  int slots = 0;
  assign_slots(chain, &slots);
  EXPECT_EQ(slots, 2);
}

TEST(DimProgram, SharesEqualExpressionsAndReportsFaults) {
  DimProgram program;
  const ir::Dim p = ir::Dim::symbol("p"), s = ir::Dim::symbol("s");
  const int total = program.add(p + s), again = program.add(s + p),
            scaled = program.add((p + s) * ir::Dim(8) + ir::Dim(1));
  EXPECT_EQ(total, again);
  program.set(program.symbol_slot("p"), 5);
  program.set(program.symbol_slot("s"), 3);
  ASSERT_TRUE(program.evaluate().ok());
  EXPECT_EQ(program.at(total), 8);
  EXPECT_EQ(program.at(scaled), 65);
  program.set(program.symbol_slot("p"), INT64_MAX);
  EXPECT_FALSE(program.evaluate().ok());
}

}  // namespace
}  // namespace decant::runtime
