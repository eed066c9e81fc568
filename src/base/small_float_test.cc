#include "base/small_float.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace decant {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

constexpr DType kAll[] = {DType::kFloat8E4M3FN,   DType::kFloat8E4M3FNUZ, DType::kFloat8E5M2,
                          DType::kFloat8E5M2FNUZ, DType::kFloat8E8M0,     DType::kFloat4E2M1};

TEST(SmallFloat, EveryPatternReadsBack) {
  for (const DType dtype : kAll) {
    for (int bits = 0; bits < (is_packed(dtype) ? 16 : 256); ++bits) {
      const float value = small_to_float(dtype, static_cast<uint8_t>(bits));
      const uint8_t again = float_to_small(dtype, value, false);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(small_to_float(dtype, again))) << to_string(dtype) << " " << bits;
      } else {
        EXPECT_EQ(int{again}, bits) << to_string(dtype);
      }
    }
  }
}

TEST(SmallFloat, OverflowSaturatesOrNot) {
  const auto round_trip = [](DType t, float v, bool saturate) {
    return small_to_float(t, float_to_small(t, v, saturate));
  };
  EXPECT_EQ(round_trip(DType::kFloat8E4M3FN, 1e9f, true), 448);
  EXPECT_TRUE(std::isnan(round_trip(DType::kFloat8E4M3FN, 1e9f, false)));
  EXPECT_EQ(round_trip(DType::kFloat8E4M3FN, 464, false), 448);  // a tie, to even
  EXPECT_EQ(round_trip(DType::kFloat8E4M3FNUZ, -kInfinity, true), -240);
  EXPECT_TRUE(std::isnan(round_trip(DType::kFloat8E4M3FNUZ, -kInfinity, false)));
  EXPECT_EQ(round_trip(DType::kFloat8E5M2, kInfinity, true), 57344);
  EXPECT_EQ(round_trip(DType::kFloat8E5M2, 1e9f, false), kInfinity);
  EXPECT_EQ(round_trip(DType::kFloat4E2M1, -1e9f, false), -6);
  EXPECT_FALSE(std::signbit(round_trip(DType::kFloat8E5M2FNUZ, -0.0f, false)));
}

TEST(SmallFloat, ScalesRoundAsTold) {
  const auto scale = [](float v, ScaleRounding r) {
    return small_to_float(DType::kFloat8E8M0, float_to_small(DType::kFloat8E8M0, v, true, r));
  };
  EXPECT_EQ(scale(5, ScaleRounding::kUp), 8);
  EXPECT_EQ(scale(5, ScaleRounding::kDown), 4);
  EXPECT_EQ(scale(5, ScaleRounding::kNearest), 4);
  EXPECT_EQ(scale(6, ScaleRounding::kNearest), 8);
  EXPECT_EQ(scale(3e38f, ScaleRounding::kUp), 0x1p127f);
}

TEST(SmallFloat, PackedElementsStandInLowBitsFirst) {
  uint8_t bytes[2] = {};
  packed_set(bytes, 4, 0, 0x3);
  packed_set(bytes, 4, 1, 0xa);
  packed_set(bytes, 4, 2, 0x7);
  EXPECT_EQ(bytes[0], 0xa3);
  EXPECT_EQ(bytes[1], 0x07);
  packed_set(bytes, 2, 1, 0x1);
  EXPECT_EQ(bytes[0], 0xa7);
  EXPECT_EQ(packed_get(bytes, 2, 3), 2);
  EXPECT_EQ(bytes_of(DType::kUInt2, 5), 2u);
  EXPECT_EQ(bytes_of(DType::kInt4, 0), 0u);
}

}  // namespace
}  // namespace decant
