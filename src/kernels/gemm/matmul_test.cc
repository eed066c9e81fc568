#include <cmath>

#include "kernels/reference/reference.h"
#include "kernels/testing.h"

namespace decant::kernels {
namespace {

class MatmulTest : public KernelTest {
 protected:
  struct Case {
    int64_t m, n, k;
    DType dtype;
    bool transposed, bias, accumulate;
  };

  void check(const Case& c) {
    SCOPED_TRACE(testing::Message() << c.m << "x" << c.n << "x" << c.k << " " << to_string(c.dtype)
                                    << (c.transposed ? " nk" : " kn") << (c.bias ? " bias" : "")
                                    << (c.accumulate ? " accumulate" : ""));
    const int64_t lda = c.k + 3, ldb = (c.transposed ? c.k : c.n) + 5, ldc = c.n + 2;
    const auto a = random(c.m * lda);
    const auto b = as(c.dtype, random((c.transposed ? c.n : c.k) * ldb));
    const auto bias = random(c.n);
    const auto start = random(c.m * ldc);
    auto got = start, want = start;
    MatmulPart p;
    p.b = b.data();
    p.b_dtype = c.dtype;
    p.b_transposed = c.transposed;
    p.ldb = ldb;
    p.n = c.n;
    p.bias = c.bias ? bias.data() : nullptr;
    p.ldc = ldc;
    p.accumulate = c.accumulate;
    p.c = want.data();
    reference::matmul(c.m, c.k, a.data(), lda, p);
    p.c = got.data();
    std::vector<std::byte> scratch(matmul_scratch_bytes(c.m, c.n, c.k, pool.size()));
    matmul(ctx, c.m, c.k, a.data(), lda, p, scratch);
    expect_near(got, want,
                2e-6f * std::sqrt(static_cast<float>(c.k + 1)));  // columns past n stay as they were
  }
};

TEST_P(MatmulTest, EveryLayoutAndElement) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (const bool transposed : {false, true}) {
      for (const int64_t m : {1, 2, 3, 5, 8, 9, 17, 33})
        check({m, 100, 75, dtype, transposed, true, m % 2 == 1});
    }
  }
}

TEST_P(MatmulTest, SizesAroundBlocks) {
  for (const bool transposed : {false, true}) {
    for (const int64_t n : {1, 3, 15, 16, 31, 32, 33, 64, 300}) {
      for (const int64_t k : {1, 7, 8, 9, 16, 255, 257, 520}) {
        check({1, n, k, DType::kFloat32, transposed, false, false});
        check({19, n, k, DType::kFloat32, transposed, true, true});
      }
    }
  }
}

TEST_P(MatmulTest, ManyRows) {
  for (const bool transposed : {false, true}) {
    for (const int64_t n : {1, 31, 33, 300}) {
      for (const int64_t k : {1, 33, 255, 520})
        check({261, n, k, DType::kFloat32, transposed, true, n == 31});
    }
  }
}

TEST_P(MatmulTest, ManyChunks) {
  check({1, 1000, 300, DType::kFloat32, false, true, true});
  check({1, 1000, 300, DType::kBFloat16, true, true, true});
  check({4, 5000, 64, DType::kFloat32, false, false, false});
  check({130, 200, 300, DType::kBFloat16, true, true, false});
  check({70, 40, 600, DType::kFloat16, false, false, true});
}

TEST_P(MatmulTest, SplitDepth) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    check({1, 200, 600, dtype, false, true, true});
    check({3, 577, 1501, dtype, false, true, false});
    check({8, 64, 1203, dtype, false, false, true});
  }
}

TEST_P(MatmulTest, ThreadsDoNotChangeTheSums) {
  const int64_t k = 700, n = 300;
  const auto b = random(k * n);
  for (const int64_t m : {1, 8, 20}) {
    const auto a = random(m * k);
    std::vector<std::vector<float>> results;
    for (const int threads : {1, 2, 3, 7}) {
      ThreadPool some(threads);
      std::vector<float> got(static_cast<size_t>(m * n));
      MatmulPart p;
      p.b = b.data();
      p.ldb = p.n = p.ldc = n;
      p.c = got.data();
      std::vector<std::byte> scratch(matmul_scratch_bytes(m, n, k, threads));
      matmul({ctx.table, &some}, m, k, a.data(), k, p, scratch);
      results.push_back(got);
    }
    for (const auto& got : results) EXPECT_EQ(got, results[0]) << m;
  }
}

TEST_P(MatmulTest, NothingToSum) {
  check({2, 20, 0, DType::kFloat32, false, true, true});
  check({2, 20, 0, DType::kFloat32, true, true, false});
  check({12, 20, 0, DType::kFloat32, false, true, false});
}

TEST_P(MatmulTest, WithoutScratchTheResultIsTheSame) {
  const int64_t m = 20, n = 50, k = 40;
  const auto a = random(m * k);
  const auto b = random(k * n);
  std::vector<float> got(static_cast<size_t>(m * n)), want = got;
  MatmulPart p;
  p.b = b.data();
  p.ldb = n;
  p.n = n;
  p.ldc = n;
  p.c = got.data();
  matmul(ctx, m, k, a.data(), k, p, {});
  p.c = want.data();
  reference::matmul(m, k, a.data(), k, p);
  expect_near(got, want, 2e-5f);
}

TEST_P(MatmulTest, InfinitiesAndNansStay) {
  const int64_t m = 20, n = 40, k = 50;
  for (const bool transposed : {false, true}) {
    auto a = random(m * k);
    auto b = random(k * n);
    a[3] = INFINITY;
    a[static_cast<size_t>(k + 5)] = NAN;
    b[7] = -INFINITY;
    std::vector<float> got(static_cast<size_t>(m * n)), want = got;
    MatmulPart p;
    p.b = b.data();
    p.b_transposed = transposed;
    p.ldb = transposed ? k : n;
    p.n = p.ldc = n;
    p.c = got.data();
    std::vector<std::byte> scratch(matmul_scratch_bytes(m, n, k, pool.size()));
    matmul(ctx, m, k, a.data(), k, p, scratch);
    p.c = want.data();
    reference::matmul(m, k, a.data(), k, p);
    for (size_t i = 0; i < got.size(); ++i) {
      if (std::isfinite(want[i])) {
        EXPECT_NEAR(got[i], want[i], 2e-5f) << i;
      } else if (std::isnan(want[i])) {
        EXPECT_TRUE(std::isnan(got[i])) << i;
      } else {
        EXPECT_EQ(got[i], want[i]) << i;
      }
    }
  }
}

// Sums of products of very different sizes: an f32 keeps 24 bits whatever unit multiplies it.
TEST_P(MatmulTest, KeepsTheBitsOfF32) {
  const int64_t m = 33, n = 35, k = 64;
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
    const auto a = random(m * k);
    const auto b = as(dtype, random(k * n));
    std::vector<float> got(static_cast<size_t>(m * n)), want = got;
    MatmulPart p;
    p.b = b.data();
    p.b_dtype = dtype;
    p.ldb = p.n = p.ldc = n;
    p.c = got.data();
    std::vector<std::byte> scratch(matmul_scratch_bytes(m, n, k, pool.size()));
    matmul(ctx, m, k, a.data(), k, p, scratch);
    p.c = want.data();
    reference::matmul(m, k, a.data(), k, p);
    double error = 0, size = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      error += std::pow(static_cast<double>(got[i]) - want[i], 2);
      size += std::pow(static_cast<double>(want[i]), 2);
    }
    EXPECT_LT(std::sqrt(error / size), 2e-7) << to_string(dtype);
  }
}

TEST_P(MatmulTest, GroupEqualsItsParts) {
  for (const int64_t m : {1, 3, 40}) {
    const int64_t k = 192, widths[] = {192, 64, 64, 500, 10};
    const auto a = random(m * k);
    std::vector<std::vector<float>> weights, got, want;
    std::vector<MatmulPart> parts;
    for (const int64_t n : widths) {
      weights.push_back(random(k * n));
      got.emplace_back(static_cast<size_t>(m * n));
    }
    want = got;
    for (size_t i = 0; i < got.size(); ++i) {
      MatmulPart p;
      p.b = weights[i].data();
      p.b_transposed = i % 2 == 1;
      p.n = p.ldc = widths[i];
      p.ldb = p.b_transposed ? k : p.n;
      p.c = want[i].data();
      reference::matmul(m, k, a.data(), k, p);
      p.c = got[i].data();
      parts.push_back(p);
    }
    std::vector<std::byte> scratch(matmul_scratch_bytes(m, 500, k, pool.size()));
    matmul_group(ctx, m, k, a.data(), k, parts, scratch);
    for (size_t i = 0; i < got.size(); ++i) expect_near(got[i], want[i], 3e-5f);
  }
}

DECANT_EACH_ISA(MatmulTest);

}  // namespace
}  // namespace decant::kernels
