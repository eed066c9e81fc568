#include "base/cpu.h"

#include <gmock/gmock.h>
#include <sched.h>

#include <cstdlib>
#include <thread>

namespace decant {
namespace {

TEST(Cpu, BaselineIsAlwaysThere) {
  const auto isas = available_isas();
  ASSERT_FALSE(isas.empty());
  EXPECT_EQ(isas.back(), Isa::kBaseline);
}

TEST(Cpu, SelectsByName) {
  for (const Isa isa : available_isas()) {
    auto r = select_isa(to_string(isa));
    ASSERT_TRUE(r.ok());
    EXPECT_EQ(*r, isa);
  }
}

TEST(Cpu, UnknownNameListsTheAvailableOnes) {
  auto r = select_isa("sse9");
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(r.status().message(),
              testing::AllOf(testing::HasSubstr("sse9"), testing::HasSubstr("baseline")));
}

TEST(Cpu, EnvironmentOverrides) {
  const char* before = std::getenv("DECANT_ISA");
  const std::string saved = before ? before : "";
  setenv("DECANT_ISA", "baseline", 1);
  auto r = select_isa();
  ASSERT_TRUE(r.ok());
  EXPECT_EQ(*r, Isa::kBaseline);
  setenv("DECANT_ISA", "nonsense", 1);
  auto bad = select_isa();
  ASSERT_FALSE(bad.ok());
  EXPECT_THAT(bad.status().message(), testing::HasSubstr("DECANT_ISA"));
  if (before) {
    setenv("DECANT_ISA", saved.c_str(), 1);
  } else {
    unsetenv("DECANT_ISA");
  }
}

TEST(Cpu, ThreadCountFollowsTheAffinityMask) {
  EXPECT_GE(default_thread_count(), 1);
#if defined(__linux__)
  int in_narrow_thread = 0;
  std::thread([&] {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    sched_getaffinity(0, sizeof(mask), &mask);
    int first = 0;
    while (!CPU_ISSET(first, &mask)) ++first;
    CPU_ZERO(&mask);
    CPU_SET(first, &mask);
    if (sched_setaffinity(0, sizeof(mask), &mask) == 0) in_narrow_thread = default_thread_count();
  }).join();
  EXPECT_LE(in_narrow_thread, 1);
#endif
}

}  // namespace
}  // namespace decant
