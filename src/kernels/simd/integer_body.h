#pragma once

// 8-bit integers. Plain loops that the compiler turns into the set's multiply-add and conversion
// instructions.

namespace decant::kernels::DECANT_ISA {

/// Sums of products of two rows of a with four rows of b, k <= kIntegerChunk; c is [2][ldc].
template <typename T>
inline void integer_tile(int64_t k, const int16_t* a, int64_t lda, const T* b, int64_t ldb, int32_t* c,
                         int64_t ldc) {
  const int16_t *a0 = a, *a1 = a + lda;
  const T *b0 = b, *b1 = b + ldb, *b2 = b + 2 * ldb, *b3 = b + 3 * ldb;
  int32_t s00 = 0, s01 = 0, s02 = 0, s03 = 0, s10 = 0, s11 = 0, s12 = 0, s13 = 0;
  for (int64_t i = 0; i < k; ++i) {
    const int16_t x0 = a0[i], x1 = a1[i];
    const int16_t y0 = b0[i], y1 = b1[i], y2 = b2[i], y3 = b3[i];
    s00 += static_cast<int32_t>(x0) * y0;
    s01 += static_cast<int32_t>(x0) * y1;
    s02 += static_cast<int32_t>(x0) * y2;
    s03 += static_cast<int32_t>(x0) * y3;
    s10 += static_cast<int32_t>(x1) * y0;
    s11 += static_cast<int32_t>(x1) * y1;
    s12 += static_cast<int32_t>(x1) * y2;
    s13 += static_cast<int32_t>(x1) * y3;
  }
  c[0] = s00, c[1] = s01, c[2] = s02, c[3] = s03;
  c[ldc] = s10, c[ldc + 1] = s11, c[ldc + 2] = s12, c[ldc + 3] = s13;
}

/// The same for one row of a with one row of b.
template <typename T>
inline int32_t integer_dot(int64_t k, const int16_t* a, const T* b) {
  int32_t sum = 0;
  for (int64_t i = 0; i < k; ++i) {
    const int16_t y = b[i];
    sum += static_cast<int32_t>(a[i]) * y;
  }
  return sum;
}

/// c[m][n] += a[m] . b[n]: any m, n; k in chunks whose sums fit 32 bits. Sums wrap.
template <typename T>
void integer_block(int64_t m, int64_t n, int64_t k, const int16_t* a, int64_t lda, const void* b, int64_t ldb,
                   int32_t* c, int64_t ldc) {
  const T* const weights = static_cast<const T*>(b);
  const auto add = [](int32_t* to, int32_t value) {
    *to = static_cast<int32_t>(static_cast<uint32_t>(*to) + static_cast<uint32_t>(value));
  };
  for (int64_t k0 = 0; k0 < k; k0 += kIntegerChunk) {
    const int64_t kn = k - k0 < kIntegerChunk ? k - k0 : kIntegerChunk;
    int64_t j = 0;
    for (; j + 4 <= n; j += 4) {
      const T* const row = weights + j * ldb + k0;
      int64_t i = 0;
      for (; i + 2 <= m; i += 2) {
        int32_t sums[8];
        integer_tile<T>(kn, a + i * lda + k0, lda, row, ldb, sums, 4);
        for (int s = 0; s < 8; ++s) add(c + (i + s / 4) * ldc + j + s % 4, sums[s]);
      }
      for (; i < m; ++i) {
        for (int64_t s = 0; s < 4; ++s)
          add(c + i * ldc + j + s, integer_dot<T>(kn, a + i * lda + k0, row + s * ldb));
      }
    }
    for (; j < n; ++j) {
      for (int64_t i = 0; i < m; ++i)
        add(c + i * ldc + j, integer_dot<T>(kn, a + i * lda + k0, weights + j * ldb + k0));
    }
  }
}

/// Smallest and largest of x and 0.
inline void range_with_zero(const float* x, int64_t n, float* low, float* high) {
  constexpr int kParts = 16;
  float lows[kParts] = {}, highs[kParts] = {};
  int64_t i = 0;
  for (; i + kParts <= n; i += kParts) {
    for (int j = 0; j < kParts; ++j) {
      lows[j] = x[i + j] < lows[j] ? x[i + j] : lows[j];
      highs[j] = x[i + j] > highs[j] ? x[i + j] : highs[j];
    }
  }
  for (; i < n; ++i) {
    lows[0] = x[i] < lows[0] ? x[i] : lows[0];
    highs[0] = x[i] > highs[0] ? x[i] : highs[0];
  }
  *low = lows[0];
  *high = highs[0];
  for (int j = 1; j < kParts; ++j) {
    *low = lows[j] < *low ? lows[j] : *low;
    *high = highs[j] > *high ? highs[j] : *high;
  }
}

/// saturate(round_half_even(x / scale) + zero) to [lowest, lowest + 255], as bytes.
inline void quantize_row(const float* x, float scale, int32_t zero, int32_t lowest, uint8_t* y, int64_t n) {
  const float low = static_cast<float>(lowest - zero), high = static_cast<float>(lowest + 255 - zero);
  for (int64_t i = 0; i < n; ++i) {
    float v = x[i] / scale;
    v = v > low ? v : low;
    v = v < high ? v : high;
    // Adding 1.5 * 2^23 rounds to an integer, halves to even.
    const float rounded = (v + 12582912.0f) - 12582912.0f;
    y[i] = static_cast<uint8_t>(static_cast<int32_t>(rounded) + zero);
  }
}

inline void fill_integer(KernelTable& t) {
  t.integer_block[0] = integer_block<uint8_t>;
  t.integer_block[1] = integer_block<int8_t>;
  t.range_with_zero = range_with_zero;
  t.quantize_row = quantize_row;
}

}  // namespace decant::kernels::DECANT_ISA
