#include <cmath>

#include "kernels/reference/reference.h"
#include "kernels/testing.h"

namespace decant::kernels {
namespace {

class RowsTest : public KernelTest {};

TEST_P(RowsTest, RmsNorm) {
  for (const int64_t cols : {1, 5, 16, 31, 576, 1000}) {
    const int64_t rows = cols > 500 ? 40 : 3, ld = cols + 1;
    const auto x = random(rows * ld, 3), residual = random(rows * ld), weight = random(cols);
    for (const bool add : {false, true}) {
      std::vector<float> got(x.size()), want = got, got_sum = got, want_sum = got;
      RmsNormArgs g;
      g.rows = rows;
      g.cols = cols;
      g.x = x.data();
      g.ldx = g.ldy = ld;
      g.residual = add ? residual.data() : nullptr;
      g.weight = weight.data();
      g.eps = 1e-5f;
      g.y = want.data();
      g.sum_out = want_sum.data();
      reference::rms_norm(g);
      g.y = got.data();
      g.sum_out = got_sum.data();
      rms_norm(ctx, g);
      expect_near(got, want, 2e-6f);
      expect_near(got_sum, want_sum, 1e-6f);
      auto in_place = x;
      g.x = g.sum_out = in_place.data();
      rms_norm(ctx, g);
      expect_near(got, want, 2e-6f);
    }
  }
}

TEST_P(RowsTest, LayerNormAndSoftmax) {
  for (const int64_t cols : {1, 5, 16, 31, 100, 1000}) {
    const int64_t rows = 30, ld = cols + 3;
    const auto x = random(rows * ld, 3), weight = random(cols), bias = random(cols);
    std::vector<float> got(x.size()), want = got;
    layer_norm(ctx, rows, cols, x.data(), ld, weight.data(), bias.data(), 1e-5f, got.data(), ld);
    reference::layer_norm(rows, cols, x.data(), ld, weight.data(), bias.data(), 1e-5f, want.data(), ld);
    expect_near(got, want, 1e-5f);
    softmax(ctx, rows, cols, x.data(), ld, got.data(), ld);
    reference::softmax(rows, cols, x.data(), ld, want.data(), ld);
    expect_near(got, want, 1e-6f);
  }
}

TEST_P(RowsTest, SoftmaxOfInfinities) {
  const std::vector<float> x = {-INFINITY, 1, -INFINITY, 2, -INFINITY, 0, -INFINITY, -INFINITY, 3};
  std::vector<float> got(9), want(9);
  softmax(ctx, 1, 9, x.data(), 9, got.data(), 9);
  reference::softmax(1, 9, x.data(), 9, want.data(), 9);
  expect_near(got, want, 1e-6f);
  EXPECT_EQ(got[0], 0.0f);
}

TEST_P(RowsTest, Rotary) {
  for (const bool interleaved : {false, true}) {
    for (const int64_t rotary_dim : {2, 20, 64}) {
      RotaryArgs g;
      g.batch = 2;
      g.heads = 3;
      g.seq = 40;
      g.head_dim = 64;
      g.rotary_dim = rotary_dim;
      g.interleaved = interleaved;
      const auto x = random(2 * 3 * 40 * 64), cos = random(100 * 32), sin = random(100 * 32);
      std::vector<int64_t> positions;
      for (int i = 0; i < 80; ++i) positions.push_back((i * 37) % 100);
      std::vector<float> got(x.size()), want = got;
      g.x = x.data();
      g.x_strides = {3 * 40 * 64, 64, 3 * 64};
      g.out_strides = {3 * 40 * 64, 40 * 64, 64};
      g.cos = cos.data();
      g.sin = sin.data();
      g.table_row_stride = 32;
      for (const bool gather : {false, true}) {
        g.positions = gather ? positions.data() : nullptr;
        g.positions_batch_stride = 40;
        g.table_batch_rows = 10;
        g.out = want.data();
        reference::rotary(g);
        g.out = got.data();
        rotary(ctx, g);
        expect_near(got, want, 1e-6f);
      }
      auto same = x;
      g.x = g.out = same.data();
      g.x_strides = g.out_strides;
      rotary(ctx, g);
      g.x = x.data();
      g.out = want.data();
      reference::rotary(g);
      expect_near(same, want, 1e-6f);
    }
  }
}

TEST_P(RowsTest, UnaryIsCloseInUlps) {
  std::vector<float> x;
  for (float v = -20; v < 20; v += 0.0137f) x.push_back(v);
  for (const float v : {0.0f, -0.0f, 1e-20f, -1e-20f, 1e-4f, 60.0f, -60.0f, 88.5f, -87.0f, 100.0f, -100.0f})
    x.push_back(v);
  std::vector<float> y(x.size());
  for (int i = 0; i < kUnaryOps; ++i) {
    const auto op = static_cast<UnaryOp>(i);
    unary(ctx, op, x.data(), y.data(), static_cast<int64_t>(x.size()));
    for (size_t j = 0; j < x.size(); ++j) {
      const double want = reference::unary(op, x[j]);
      if (std::isnan(want)) {
        EXPECT_TRUE(std::isnan(y[j])) << i << " of " << x[j];
        continue;
      }
      const auto rounded = static_cast<float>(want);
      if (std::isinf(rounded)) {
        EXPECT_EQ(y[j], rounded) << i << " of " << x[j];
        continue;
      }
      // Gelu cancels for negative x: its error is relative to x.
      const bool cancels = op == UnaryOp::kGeluErf || op == UnaryOp::kGeluTanh;
      const double scale = std::max(cancels ? std::abs(x[j]) : std::abs(want), 1e-35);
      ASSERT_NEAR(y[j], want, 6e-7 * scale) << "op " << i << " of " << x[j];
    }
  }
}

TEST_P(RowsTest, SinAndCosOfLargeAngles) {
  std::vector<float> x, y(2000);
  for (int i = 0; i < 2000; ++i) x.push_back(static_cast<float>(i) * 49.7f);
  unary(ctx, UnaryOp::kSin, x.data(), y.data(), 2000);
  for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(y[i], std::sin(static_cast<double>(x[i])), 1.2e-7);
  unary(ctx, UnaryOp::kCos, x.data(), y.data(), 2000);
  for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(y[i], std::cos(static_cast<double>(x[i])), 1.2e-7);
}

TEST_P(RowsTest, ExpKeepsSpecialValues) {
  const float x[] = {NAN, INFINITY, -INFINITY, -1000, 1000};
  float y[5];
  unary(ctx, UnaryOp::kExp, x, y, 5);
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_EQ(y[1], INFINITY);
  EXPECT_EQ(y[2], 0.0f);
  EXPECT_EQ(y[3], 0.0f);
  EXPECT_EQ(y[4], INFINITY);
}

TEST_P(RowsTest, Binary) {
  const int64_t rows = 300, cols = 201, n = rows * cols;
  const auto a = random(n), b = random(n);
  std::vector<float> got(a.size()), want(a.size());
  for (int i = 0; i < kBinaryOps; ++i) {
    const auto op = static_cast<BinaryOp>(i);
    const auto expect = [&](auto at) {
      for (size_t j = 0; j < a.size(); ++j) want[j] = static_cast<float>(at(j));
      expect_near(got, want, 1e-6f);
    };
    binary(ctx, op, a.data(), b.data(), got.data(), n);
    expect([&](size_t j) { return reference::binary(op, a[j], b[j]); });
    binary_row(ctx, op, a.data(), b.data(), got.data(), rows, cols);
    expect([&](size_t j) { return reference::binary(op, a[j], b[j % cols]); });
    binary_scalar(ctx, op, a.data(), 0.7f, got.data(), n);
    expect([&](size_t j) { return reference::binary(op, a[j], 0.7f); });
    binary_scalar(ctx, op, a.data(), 0.7f, got.data(), n, true);
    expect([&](size_t j) { return reference::binary(op, 0.7f, a[j]); });
  }
}

TEST_P(RowsTest, GatedHalvesOfOneMatrix) {
  for (const int64_t rows : {1, 20}) {
    const int64_t cols = 1501, ld = 2 * cols;
    const auto x = random(rows * ld, 3);
    std::vector<float> got(static_cast<size_t>(rows * cols)), want = got;
    for (const UnaryOp op : {UnaryOp::kSilu, UnaryOp::kGeluTanh, UnaryOp::kSin}) {
      gated(ctx, op, rows, cols, x.data(), ld, x.data() + cols, ld, got.data(), cols);
      for (int64_t i = 0; i < rows * cols; ++i) {
        const int64_t at = i / cols * ld + i % cols;
        want[static_cast<size_t>(i)] = static_cast<float>(reference::unary(op, x[static_cast<size_t>(at)]) *
                                                          x[static_cast<size_t>(at + cols)]);
      }
      expect_near(got, want, 3e-6f);
    }
  }
}

TEST_P(RowsTest, ArgmaxTakesTheFirstOfEquals) {
  for (const int64_t n : {1, 7, 100, 4096, 4097, 20000}) {
    auto x = random(n);
    EXPECT_EQ(argmax(ctx, x.data(), n), reference::argmax(x.data(), n));
    for (auto& v : x) v = -1;
    x[static_cast<size_t>(n / 2)] = x.back() = 5;
    EXPECT_EQ(argmax(ctx, x.data(), n), reference::argmax(x.data(), n));
    x[0] = NAN;
    EXPECT_EQ(argmax(ctx, x.data(), n), reference::argmax(x.data(), n));
  }
}

TEST_P(RowsTest, ConvertsEveryHalfBothWays) {
  std::vector<uint16_t> bits(65536), back(65536);
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i);
  std::vector<float> y(65536);
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    const bool f16 = dtype == DType::kFloat16;
    convert_to_f32(ctx, dtype, bits.data(), y.data(), 65536);
    convert_from_f32(ctx, dtype, y.data(), back.data(), 65535);
    for (size_t i = 0; i < 65535; ++i) {
      const float want = f16 ? f16_to_float(bits[i]) : bf16_to_float(bits[i]);
      if (std::isnan(want)) {
        EXPECT_TRUE(std::isnan(y[i]));
        EXPECT_TRUE(std::isnan(f16 ? f16_to_float(back[i]) : bf16_to_float(back[i])));
      } else {
        ASSERT_EQ(y[i], want);
        ASSERT_EQ(back[i], bits[i]);
      }
    }
  }
}

TEST_P(RowsTest, ConvertsRoundToNearestEven) {
  std::vector<float> x = random(5003, 100);
  for (float& v : random(3000, 1e-6f)) x.push_back(v);
  for (const float v : {65504.0f, 65519.9f, 65520.0f, 1e10f, -1e10f, 3e-8f, 2e-8f, 3.3895e38f, 3.4e38f})
    x.push_back(v);
  const auto n = static_cast<int64_t>(x.size());
  std::vector<uint16_t> y(x.size());
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    convert_from_f32(ctx, dtype, x.data(), y.data(), n);
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(y[i], dtype == DType::kFloat16 ? float_to_f16(x[i]) : float_to_bf16(x[i])) << x[i];
    }
  }
}

DECANT_EACH_ISA(RowsTest);

}  // namespace
}  // namespace decant::kernels
