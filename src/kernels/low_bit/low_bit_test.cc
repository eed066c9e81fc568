#include "kernels/low_bit.h"

#include <algorithm>
#include <cmath>

#include "kernels/gemm/gemm.h"
#include "kernels/testing.h"

namespace decant::kernels {
namespace {

/// Random packed weights as a file has them, their decoded values, and the packed matrix.
class Weights {
 public:
  Weights(std::mt19937& random, ThreadPool& pool, PackedLayout layout, bool transposed)
      : layout_(layout), transposed_(transposed) {
    const auto fill = [&](std::vector<std::byte>& bytes, int64_t n) {
      bytes.resize(static_cast<size_t>(n));
      for (std::byte& b : bytes) b = static_cast<std::byte>(random());
    };
    layout_.row_bits = (layout.columns * layout.bits + 7) / 8 * 8;
    layout_.zero_row_bits = (layout_.scale_columns() * layout.bits + 7) / 8 * 8;
    fill(codes_, layout.rows * layout_.row_bits / 8);
    fill(zeros_, layout_.scale_rows() * layout_.zero_row_bits / 8);
    const int64_t blocks = layout_.scale_rows() * layout_.scale_columns();
    const auto numbers = [&](DType dtype, std::vector<std::byte>& to, float base) {
      to.resize(static_cast<size_t>(blocks) * size_of(dtype));
      for (int64_t i = 0; i < blocks; ++i) {
        const float v = base + static_cast<float>(random() % 1000) * 1e-4f;
        const uint16_t half = dtype == DType::kFloat16 ? float_to_f16(v) : float_to_bf16(v);
        if (dtype == DType::kFloat32)
          std::memcpy(to.data() + 4 * i, &v, 4);
        else
          std::memcpy(to.data() + 2 * i, &half, 2);
      }
    };
    numbers(layout.scale_dtype, scales_, 0.01f);
    if (layout.zero == PackedLayout::Zero::kNumbers) numbers(layout.zero_dtype, zeros_, 3.3f);
    bytes_ = {codes_, scales_, zeros_, {}};
    EXPECT_TRUE(check_packed(layout_, bytes_).ok());
    rows_ = low_bit_rows(layout_, bytes_, transposed);
    if (!rows_) return;
    matrix.form = rows_->form();
    storage_.resize(matrix.bytes() + 64);
    auto* data = storage_.data() + (64 - reinterpret_cast<uintptr_t>(storage_.data()) % 64) % 64;
    pack_low_bit(pool, *rows_, matrix, data);
    matrix.data = data;
  }

  bool covered() const { return rows_ != nullptr; }
  std::vector<float> values() const {  // [n][k]
    std::vector<float> v(static_cast<size_t>(layout_.rows * layout_.columns));
    decode_packed(layout_, bytes_, 0, static_cast<int64_t>(v.size()), v.data());
    if (!transposed_) return v;
    std::vector<float> t(v.size());
    for (int64_t r = 0; r < layout_.rows; ++r)
      for (int64_t c = 0; c < layout_.columns; ++c)
        t[static_cast<size_t>(c * layout_.rows + r)] = v[static_cast<size_t>(r * layout_.columns + c)];
    return t;
  }

  LowBitMatrix matrix;

 private:
  PackedLayout layout_;
  bool transposed_;
  std::vector<std::byte> codes_, scales_, zeros_, storage_;
  PackedBytes bytes_;
  std::unique_ptr<LowBitRows> rows_;
};

class LowBitTest : public KernelTest {
 protected:
  PackedLayout layout(int64_t n, int64_t k, int bits, int64_t block) {
    PackedLayout l;
    l.rows = n;
    l.columns = k;
    l.bits = bits;
    l.block_columns = block;
    l.scale_dtype = DType::kFloat16;
    l.zero_point = 1 << (bits - 1);
    return l;
  }

  /// Products of m rows against sums in double; errors relative to the size of the terms.
  void check(const PackedLayout& l, int64_t m, bool transposed = false) {
    SCOPED_TRACE(testing::Message() << m << "x" << l.rows << "x" << l.columns << " bits " << l.bits
                                    << " block " << l.block_rows << "x" << l.block_columns << " zero "
                                    << static_cast<int>(l.zero) << " " << to_string(l.scale_dtype)
                                    << (transposed ? " transposed" : ""));
    Weights w(engine, pool, l, transposed);
    ASSERT_TRUE(w.covered());
    const std::vector<float> values = w.values();
    const int64_t n = w.matrix.form.rows, k = w.matrix.form.columns, lda = k + 3, ldc = n + 5;
    auto a = random(m * lda);
    a[static_cast<size_t>(k / 2)] *= 30;
    const auto bias = random(n), start = random(m * ldc);
    for (const Precision precision : {Precision::kExact, Precision::kFast}) {
      const double unit = precision == Precision::kExact ? 2e-7 : 1.0 / 254;
      const bool accumulate = m % 2 == 1;
      auto got = start;
      std::vector<std::byte> scratch(low_bit_scratch_bytes(m, k, pool.size()));
      LowBitPart part{&w.matrix, accumulate ? bias.data() : nullptr, got.data(), ldc, accumulate};
      low_bit_matmul(ctx, precision, m, a.data(), lda, std::span<const LowBitPart>(&part, 1), scratch);
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          double want =
              accumulate ? bias[static_cast<size_t>(j)] + start[static_cast<size_t>(i * ldc + j)] : 0;
          double bound = 1e-6;
          for (int64_t x0 = 0; x0 < k; x0 += 32) {
            double top = 0, weights = 0;
            for (int64_t x = x0; x < std::min(k, x0 + 32); ++x) {
              const double value = a[static_cast<size_t>(i * lda + x)];
              const double weight = values[static_cast<size_t>(j * k + x)];
              want += value * weight;
              top = std::max(top, std::abs(value));
              weights += std::abs(weight);
            }
            bound += unit * top * weights + 3e-7 * top * weights;
          }
          ASSERT_NEAR(got[static_cast<size_t>(i * ldc + j)], want, bound) << i << ", " << j;
        }
        for (int64_t j = n; j < ldc; ++j)
          ASSERT_EQ(got[static_cast<size_t>(i * ldc + j)], start[static_cast<size_t>(i * ldc + j)]);
      }
    }
  }
};

TEST_P(LowBitTest, DecodesToTheFilesValues) {
  for (const int bits : {2, 4, 8}) {
    for (const int64_t block : {16, 32, 128}) {
      Weights w(engine, pool, layout(35, 200, bits, block), false);
      ASSERT_TRUE(w.covered());
      const std::vector<float> values = w.values();
      const int64_t k = 200;
      for (int64_t group = 0; group < w.matrix.groups(); ++group) {
        std::vector<float> panel(static_cast<size_t>(k * 16));
        decode_low_bit(w.matrix, group, 0, k, panel.data(), 16);
        for (int64_t r = 0; r < 16 && group * 16 + r < 35; ++r)
          for (int64_t x = 0; x < k; ++x)
            ASSERT_EQ(panel[static_cast<size_t>(x * 16 + r)],
                      values[static_cast<size_t>((group * 16 + r) * k + x)]);
        if (!ctx.table->low_bit) continue;
        const LowBitArgs g = low_bit_arguments(w.matrix, group);
        std::vector<float> steps(static_cast<size_t>(3 * 32 * 16));
        ctx.table->low_bit->decode[bits == 8][w.matrix.halves()](g, 2, 3, steps.data(), 16);
        for (size_t i = 0; i < steps.size(); ++i) ASSERT_EQ(steps[i], panel[2 * 32 * 16 + i]) << i;
      }
    }
  }
}

TEST_P(LowBitTest, EveryBlockAndZero) {
  using Zero = PackedLayout::Zero;
  for (const int bits : {4, 8}) {
    for (const int64_t block : {16, 32, 64, 128, 256, 300}) {
      for (const Zero zero : {Zero::kOne, Zero::kCodes, Zero::kNumbers}) {
        for (const int64_t m : {1, 3, 9}) {
          PackedLayout l = layout(35, 300, bits, block);
          l.zero = zero;
          l.scale_dtype = m == 1 ? DType::kFloat16 : m == 3 ? DType::kFloat32 : DType::kBFloat16;
          check(l, m);
        }
      }
    }
  }
}

TEST_P(LowBitTest, EveryNumberOfRows) {
  for (const int64_t m : {1, 2, 3, 4, 5, 6, 7, 8, 9, 33, 128}) check(layout(50, 96, 4, 32), m);
  for (const int64_t m : {2, 8, 33}) check(layout(50, 96, 8, 32), m);
  check(layout(40, 200, 4, 32), 300);  // rows for tiles
  check(layout(20, 9000, 4, 32), 40);  // more digits than are held at a time
}

TEST_P(LowBitTest, OddSizes) {
  for (const int64_t n : {1, 15, 16, 17, 33}) {
    for (const int64_t k : {1, 5, 31, 32, 33, 63, 65, 100}) {
      for (const int64_t block : {16, 32}) check(layout(n, k, 4, block), 2);
    }
  }
}

TEST_P(LowBitTest, OtherWidthsAndSigns) {
  for (const int bits : {1, 2, 3, 5, 6, 7}) check(layout(20, 70, bits, 32), 2);
  for (const int bits : {4, 8}) {
    PackedLayout l = layout(20, 70, bits, 32);
    l.is_signed = true;
    l.zero_point = 0;
    check(l, 3);
    l.zero = PackedLayout::Zero::kCodes;
    check(l, 3);
    l.high_first = bits == 4;
    check(l, 1);
  }
}

// Scales by channel, by tensor, and by blocks of rows, as DequantizeLinear has them for [k, n].
TEST_P(LowBitTest, Transposed) {
  for (const int bits : {4, 8}) {
    PackedLayout l = layout(96, 40, bits, 40);
    l.zero_point = 0;
    l.zero = PackedLayout::Zero::kCodes;
    l.block_rows = 96;
    check(l, 3, true);
    l.block_columns = 1;
    check(l, 2, true);
    l.block_rows = 32;
    check(l, 9, true);
  }
}

TEST_P(LowBitTest, GroupEqualsItsParts) {
  std::vector<std::unique_ptr<Weights>> weights;
  const int64_t k = 160, m = 5;
  const auto a = random(m * k);
  std::vector<std::vector<float>> got, want;
  std::vector<LowBitPart> parts;
  std::vector<std::byte> scratch(low_bit_scratch_bytes(m, k, pool.size()));
  for (const int64_t n : {64, 17, 130}) {
    weights.push_back(std::make_unique<Weights>(engine, pool, layout(n, k, n == 17 ? 8 : 4, 32), false));
    got.emplace_back(static_cast<size_t>(m * n));
  }
  want = got;
  for (size_t i = 0; i < got.size(); ++i) {
    LowBitPart part{&weights[i]->matrix, nullptr, want[i].data(), weights[i]->matrix.form.rows, false};
    low_bit_matmul(ctx, Precision::kExact, m, a.data(), k, std::span<const LowBitPart>(&part, 1), scratch);
    part.c = got[i].data();
    parts.push_back(part);
  }
  low_bit_matmul(ctx, Precision::kExact, m, a.data(), k, parts, scratch);
  EXPECT_EQ(got, want);
}

TEST_P(LowBitTest, NumbersThatAreNone) {
  Weights w(engine, pool, layout(16, 64, 4, 32), false);
  for (const float bad : {INFINITY, NAN}) {
    auto a = random(64);
    a[40] = bad;
    std::vector<float> c(16);
    std::vector<std::byte> scratch(low_bit_scratch_bytes(1, 64, pool.size()));
    LowBitPart part{&w.matrix, nullptr, c.data(), 16, false};
    low_bit_matmul(ctx, Precision::kExact, 1, a.data(), 64, std::span<const LowBitPart>(&part, 1), scratch);
    for (const float y : c) EXPECT_FALSE(std::isfinite(y));
  }
}

DECANT_EACH_ISA(LowBitTest);

#if defined(__x86_64__)
/// The table of AVX-512 without the dot products of VNNI, where there is AVX-512.
class LowBitWithoutVnni : public LowBitTest {
 protected:
  LowBitWithoutVnni() { ctx.table = avx512_table(); }
};

std::vector<Isa> avx512_only() {
  std::vector<Isa> isas = available_isas();
  std::erase_if(isas, [](Isa isa) { return isa != Isa::kAvx512; });
  return isas;
}

TEST_P(LowBitWithoutVnni, EveryForm) {
  for (const int bits : {4, 8}) {
    for (const int64_t block : {16, 32, 128}) {
      for (const int64_t m : {1, 7, 20}) check(layout(50, 200, bits, block), m);
    }
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LowBitWithoutVnni);
INSTANTIATE_TEST_SUITE_P(, LowBitWithoutVnni,
                         testing::Combine(testing::ValuesIn(avx512_only()), testing::Values(1, 3)),
                         kernel_test_name);
#endif

}  // namespace
}  // namespace decant::kernels
