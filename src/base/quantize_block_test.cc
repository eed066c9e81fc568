#include "base/quantize_block.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "base/half.h"

namespace decant {
namespace {

std::vector<BlockRounding> forms() {
  std::vector<BlockRounding> out;
  for (const int bits : {4, 8})
    for (const bool zeros : {false, true})
      for (const DType scale : {DType::kFloat32, DType::kFloat16}) out.push_back({bits, zeros, scale, true});
  return out;
}

/// Squared error of what the codes say.
double error_of(const RoundedBlock& b, const std::vector<float>& x, const std::vector<uint8_t>& codes,
                const float* importance = nullptr) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double d = static_cast<double>(x[i]) - (codes[i] - b.zero) * static_cast<double>(b.scale);
    sum += (importance ? static_cast<double>(importance[i]) : 1.0) * d * d;
  }
  return sum;
}

TEST(QuantizeBlock, IsNoWorseThanPlainRounding) {
  std::mt19937 random(1);
  for (BlockRounding how : forms()) {
    double searched = 0, plain = 0;
    for (int round = 0; round < 400; ++round) {
      const size_t n = round % 5 == 4 ? 1 + random() % 40 : size_t{16} << (random() % 5);
      std::vector<float> x(n), importance(n);
      std::normal_distribution<float> spread(round % 3 == 0 ? 0.4f : 0.0f, std::pow(10.0f, round % 7 - 3.0f));
      for (float& v : x) v = spread(random);
      if (round % 4 == 0) x[0] *= 6;
      for (float& v : importance) v = static_cast<float>(random() % 100) / 50;
      const float* weigh = round % 2 ? importance.data() : nullptr;
      std::vector<uint8_t> codes(n);
      how.search = true;
      const RoundedBlock best = round_block(how, x, weigh, codes.data());
      for (const uint8_t c : codes) ASSERT_LT(c, 1 << how.bits);
      ASSERT_GE(best.zero, 0);
      ASSERT_LT(best.zero, 1 << how.bits);
      const bool centred = best.zero == 1 << (how.bits - 1);
      ASSERT_TRUE(centred || how.zero_points);
      const bool exact = f16_to_float(float_to_f16(best.scale)) == best.scale;
      ASSERT_TRUE(exact || how.scale_dtype == DType::kFloat32);
      const double error = error_of(best, x, codes, weigh);
      ASSERT_NEAR(error, best.error, 1e-4 * best.error + 1e-20);
      how.search = false;
      const RoundedBlock first = round_block(how, x, weigh, codes.data());
      ASSERT_LE(error, first.error * (1 + 1e-5) + 1e-20) << how.bits << how.zero_points << ' ' << n;
      if (first.error == 0) continue;
      searched += error / first.error;
      plain += 1;
    }
    // Of 4 bits the search takes a good part of the error away.
    EXPECT_LT(searched, (how.bits == 4 ? 0.85 : 1) * plain);
  }
}

TEST(QuantizeBlock, ZeroPointsAreNeverWorse) {
  std::mt19937 random(2);
  std::normal_distribution<float> normal(0, 1);
  for (int round = 0; round < 200; ++round) {
    std::vector<float> x(32);
    for (float& v : x) v = normal(random) + static_cast<float>(round % 3);
    std::vector<uint8_t> codes(32);
    const double centred = round_block({4, false}, x, nullptr, codes.data()).error;
    EXPECT_LE(round_block({4, true}, x, nullptr, codes.data()).error, centred * (1 + 1e-6));
  }
}

TEST(QuantizeBlock, KeepsWhatIsOnAGrid) {
  std::mt19937 random(3);
  for (const BlockRounding& how : forms()) {
    const int middle = 1 << (how.bits - 1);
    for (int round = 0; round < 200; ++round) {
      // Any scale that is exact in its type, either sign, codes that need not reach the ends.
      const float scale = (round % 2 ? 1.0f : -1.0f) *
                          f16_to_float(float_to_f16(0.01f + static_cast<float>(random() % 1000) * 1e-3f));
      const int reach = 1 + static_cast<int>(random() % static_cast<unsigned>(middle));
      std::vector<float> x(32);
      for (float& v : x)
        v = scale *
            static_cast<float>(std::min(middle - 1, static_cast<int>(random() % (2 * reach + 1)) - reach));
      std::vector<uint8_t> codes(x.size());
      const RoundedBlock b = round_block(how, x, nullptr, codes.data());
      for (size_t i = 0; i < x.size(); ++i) {
        EXPECT_NEAR((codes[i] - b.zero) * b.scale, x[i], 2e-7f * std::fabs(x[i]))
            << how.bits << ' ' << how.zero_points << ' ' << reach;
      }
    }
  }
}

TEST(QuantizeBlock, ZerosAndExtremes) {
  std::vector<uint8_t> codes(32);
  for (const BlockRounding& how : forms()) {
    RoundedBlock b = round_block(how, std::vector<float>(32, 0.0f), nullptr, codes.data());
    for (const uint8_t c : codes) EXPECT_EQ(static_cast<float>(c - b.zero) * b.scale, 0.0f);
    EXPECT_EQ(b.error, 0);
    // Numbers at the ends of float32 keep within a step of themselves, where the scale has room for them.
    for (const float size : {1e-38f, 1e-30f, 1e30f, 3e38f}) {
      if (how.scale_dtype == DType::kFloat16) continue;
      b = round_block(how, std::vector<float>{size, -size / 3, size / 7}, nullptr, codes.data());
      ASSERT_TRUE(std::isfinite(b.scale));
      EXPECT_NEAR(static_cast<double>(b.scale) * (codes[0] - b.zero), size, 0.1 * static_cast<double>(size));
    }
  }
  const std::vector<float> large(16, 3e7f);
  EXPECT_TRUE(std::isinf(round_block({4, false, DType::kFloat16}, large, nullptr, codes.data()).scale));
}

TEST(QuantizeBlock, ImportanceDecides) {
  std::mt19937 random(4);
  std::normal_distribution<float> normal(0, 1);
  double weighed = 0, even = 0;
  for (int round = 0; round < 100; ++round) {
    std::vector<float> x(32), importance(32);
    for (float& v : x) v = normal(random);
    for (size_t i = 0; i < x.size(); ++i) importance[i] = i % 8 == 0 ? 1.0f : 1e-3f;
    std::vector<uint8_t> codes(32);
    weighed += round_block({4, false}, x, importance.data(), codes.data()).error;
    even += error_of(round_block({4, false}, x, nullptr, codes.data()), x, codes, importance.data());
  }
  EXPECT_LT(weighed, 0.6 * even);
}

}  // namespace
}  // namespace decant
