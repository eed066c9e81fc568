#include <algorithm>
#include <cstring>

#include "kernels/parallel.h"

namespace decant::kernels {
namespace {

// Rows of a that are widened at a time, and rows of b that a task works on at a time.
constexpr int64_t kRows = 64;
constexpr int64_t kColumns = 32;

}  // namespace

size_t integer_matmul_scratch_bytes(int64_t m, int64_t k) {
  const int64_t rows = std::min(m, kRows);
  return static_cast<size_t>(rows * k) * 2 + static_cast<size_t>(rows) * 4 + 3 * 64;
}

void integer_matmul(const Context& ctx, const IntegerMatmulArgs& g, std::span<std::byte> scratch) {
  const int64_t rows_at_once = std::min(g.m, kRows);
  Scratch memory(scratch);
  auto* const wide = memory.take<int16_t>(rows_at_once * g.k);
  auto* const row_sums = memory.take<int32_t>(rows_at_once);
  if (!wide || !row_sums) return;
  for (int64_t first = 0; first < g.m; first += kRows) {
    const int64_t rows = std::min(kRows, g.m - first);
    for (int64_t i = 0; i < rows; ++i) {
      const int32_t zero = g.a_zeros ? g.a_zeros[g.a_zero_count == 1 ? 0 : first + i] : 0;
      int16_t* const out = wide + i * g.k;
      uint32_t sum = 0;
      const auto widen = [&](const auto* x) {
        for (int64_t l = 0; l < g.k; ++l) {
          out[l] = static_cast<int16_t>(x[l] - zero);
          sum += static_cast<uint32_t>(static_cast<int32_t>(out[l]));
        }
      };
      const auto* const bytes = static_cast<const std::byte*>(g.a) + (first + i) * g.k;
      if (g.a_signed)
        widen(reinterpret_cast<const int8_t*>(bytes));
      else
        widen(reinterpret_cast<const uint8_t*>(bytes));
      row_sums[i] = static_cast<int32_t>(sum);
    }
    const int64_t blocks = ceil_div(g.n, kColumns);
    // A byte of b costs about as much as moving `rows` of them.
    const double cost = static_cast<double>(g.k * kColumns) * static_cast<double>(1 + rows / 4);
    for_range(ctx, blocks, cost, 1, [&](int, int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        const int64_t n0 = block * kColumns, n = std::min(kColumns, g.n - n0);
        int32_t* const c = g.c + first * g.n + n0;
        for (int64_t i = 0; i < rows; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            const int32_t zero = g.b_zeros ? g.b_zeros[g.b_zero_count == 1 ? 0 : n0 + j] : 0;
            c[i * g.n + j] =
                static_cast<int32_t>(0u - static_cast<uint32_t>(zero) * static_cast<uint32_t>(row_sums[i]));
          }
        }
        ctx.table->integer_block[g.b_signed ? 1 : 0](
            rows, n, g.k, wide, g.k, static_cast<const std::byte*>(g.b) + n0 * g.k, g.k, c, g.n);
      }
    });
  }
}

void range_with_zero(const Context& ctx, const float* x, int64_t n, float* low, float* high) {
  ctx.table->range_with_zero(x, n, low, high);
}

void quantize(const Context& ctx, const float* x, float scale, int32_t zero, bool is_signed, void* y,
              int64_t n) {
  for_range(ctx, n, 5.0, 64, [&](int, int64_t begin, int64_t end) {
    ctx.table->quantize_row(x + begin, scale, zero, is_signed ? -128 : 0, static_cast<uint8_t*>(y) + begin,
                            end - begin);
  });
}

}  // namespace decant::kernels
