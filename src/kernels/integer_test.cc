#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/testing.h"

namespace decant::kernels {
namespace {

class IntegerTest : public KernelTest {
 protected:
  std::vector<uint8_t> bytes(int64_t n) {
    std::vector<uint8_t> v(static_cast<size_t>(n));
    for (uint8_t& x : v) x = static_cast<uint8_t>(engine());
    return v;
  }
};

TEST_P(IntegerTest, MatmulIsExact) {
  for (const auto& [m, n, k] :
       {std::array<int64_t, 3>{1, 1, 1}, {1, 70, 64}, {3, 5, 37}, {67, 35, 130}, {2, 6, 40000}}) {
    const auto a = bytes(m * k), b = bytes(n * k);
    std::vector<int32_t> a_zero = {128}, b_zeros(static_cast<size_t>(n));
    for (const bool is_signed : {false, true}) {
      for (int32_t& z : b_zeros) z = static_cast<int32_t>(engine() % 256) - (is_signed ? 128 : 0);
      IntegerMatmulArgs g;
      g.m = m;
      g.n = n;
      g.k = k;
      g.a = a.data();
      g.a_zeros = a_zero.data();
      g.a_zero_count = 1;
      g.b = b.data();
      g.b_signed = is_signed;
      g.b_zeros = b_zeros.data();
      g.b_zero_count = n;
      std::vector<int32_t> got(static_cast<size_t>(m * n)), want;
      g.c = got.data();
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          int64_t sum = 0;
          for (int64_t l = 0; l < k; ++l) {
            const uint8_t y = b[static_cast<size_t>(j * k + l)];
            sum += (a[static_cast<size_t>(i * k + l)] - 128) *
                   ((is_signed ? static_cast<int8_t>(y) : static_cast<int>(y)) -
                    b_zeros[static_cast<size_t>(j)]);
          }
          want.push_back(static_cast<int32_t>(sum));
        }
      }
      std::vector<std::byte> scratch(integer_matmul_scratch_bytes(m, k));
      integer_matmul(ctx, g, scratch);
      ASSERT_EQ(got, want);
    }
  }
}

TEST_P(IntegerTest, QuantizeRoundsHalvesToEven) {
  for (const int64_t n : {1, 15, 16, 1000, 100000}) {
    auto x = random(n, 50);
    if (n > 4) x[0] = 2.5f, x[1] = 3.5f, x[2] = -2.5f, x[3] = 1e30f, x[4] = -1e30f;
    float low = 0, high = 0, want_low = 0, want_high = 0;
    range_with_zero(ctx, x.data(), n, &low, &high);
    for (const float v : x) want_low = std::min(want_low, v), want_high = std::max(want_high, v);
    EXPECT_EQ(low, want_low);
    EXPECT_EQ(high, want_high);
    for (const bool is_signed : {false, true}) {
      const int32_t zero = is_signed ? -7 : 100;
      std::vector<uint8_t> got(x.size());
      quantize(ctx, x.data(), 1.0f, zero, is_signed, got.data(), n);
      for (size_t i = 0; i < x.size(); ++i) {
        const double v = std::clamp(std::nearbyint(static_cast<double>(x[i])) + zero,
                                    is_signed ? -128.0 : 0.0, is_signed ? 127.0 : 255.0);
        ASSERT_EQ(is_signed ? static_cast<int8_t>(got[i]) : static_cast<int>(got[i]), static_cast<int>(v))
            << x[i];
      }
    }
  }
}

DECANT_EACH_ISA(IntegerTest);

}  // namespace
}  // namespace decant::kernels
