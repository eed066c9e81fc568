#include "base/memory_limit.h"

#include <gtest/gtest.h>

namespace decant {
namespace {

TEST(MemoryLimit, IsThatOfAMachine) {
  EXPECT_GT(memory_limit(), uint64_t{1} << 20);
  EXPECT_LT(memory_limit(), uint64_t{1} << 50);
}

}  // namespace
}  // namespace decant
