#include <algorithm>
#include <array>

#include "kernels/gemm/gemm.h"
#include "kernels/low_bit.h"

namespace decant::kernels {
namespace {

/// Digits of activations that stay in the second cache level while groups of weights meet them.
constexpr int64_t kDigitBytes = 768 << 10;
/// Of k that is decoded at a time where there are no kernels for codes.
constexpr int64_t kDecodeDepth = 256;
/// Codes are prefetched about so far ahead.
constexpr int64_t kAheadBytes = 4608;
constexpr double kChunkBytes = 32 * 1024;
/// Rows of A from which tiles are faster than codes, where there are tiles.
constexpr int64_t kPieceRowsMin = 16;

int64_t step_bytes(int digits) { return 32 * digits + 4 * low_bit_numbers(digits); }

/// Rows of A whose digits are held at a time: whole sets of eight.
int64_t rows_at_once(int64_t m, int64_t k, int digits) {
  const int64_t fit = kDigitBytes / (std::max<int64_t>(1, ceil_div(k, 32)) * step_bytes(digits));
  return std::min(m, std::max<int64_t>(8, fit / 8 * 8));
}

/// Rows [0, m) in sets of `most` and, at the end, of smaller powers of two.
struct RowSets {
  int64_t m;
  int most;

  /// The set that begins at `row`.
  int64_t size_at(int64_t row) const {
    int64_t size = most;
    while (size > m - row) size /= 2;
    return size;
  }
  int64_t begin_of(int64_t row) const {
    if (row < m / most * most) return row / most * most;
    int64_t begin = m / most * most;
    while (begin + size_at(begin) <= row) begin += size_at(begin);
    return begin;
  }
};

/// Digits and numbers of rows, set by set.
struct Digits {
  RowSets sets;
  int64_t steps;
  int count;  ///< of digits
  int32_t* words;
  float* numbers;

  int32_t* words_at(int64_t row) const { return words + row * steps * 8 * count; }
  float* numbers_at(int64_t row) const { return numbers + row * steps * low_bit_numbers(count); }
};

/// Groups [begin, end) of one part, for all rows.
void multiply_groups(const LowBitKernels& kernels, bool exact, const LowBitPart& part, const Digits& digits,
                     int64_t first_row, int64_t begin, int64_t end) {
  const LowBitMatrix& w = *part.weights;
  LowBitArgs g = low_bit_arguments(w, begin);
  const auto& rows = kernels.rows[exact][w.form.bits == 8][w.halves()];
  const int64_t m = digits.sets.m;
  const bool one_set = digits.sets.size_at(0) == m;
  // With several sets a group is read from memory by the first, and then from the first cache level.
  const int64_t groups = one_set ? end - begin : 1;
  const int64_t whole = g.group_bytes * std::max<int64_t>(1, kAheadBytes / g.group_bytes);
  for (int64_t group = begin; group < end; group += groups) {
    g.groups = groups;
    g.n = w.form.rows - group * kLowBitGroup;
    g.bias = part.bias ? part.bias + group * kLowBitGroup : nullptr;
    g.accumulate = part.accumulate;
    g.ldc = part.ldc;
    g.ahead = whole;
    for (int64_t row = 0; row < m;) {
      const int64_t size = digits.sets.size_at(row);
      g.digits = digits.words_at(row);
      g.numbers = digits.numbers_at(row);
      g.c = part.c + (first_row + row) * part.ldc + group * kLowBitGroup;
      rows[size == 8 ? 3 : size == 4 ? 2 : size == 2 ? 1 : 0](g);
      g.ahead = 0;
      row += size;
    }
    g.group += groups * g.group_bytes;
  }
}

const LowBitMatrix& weights_of(const LowBitPart& part) { return *part.weights; }
const LowBitMatrix& weights_of(const MatmulPart& part) { return *part.low_bit; }

/// Parts of a parallel region: groups of all parts, numbered through.
template <typename Part, typename F>
void for_groups(const Context& ctx, std::span<const Part> parts, int64_t m, F&& f) {
  std::array<int64_t, kMaxMatmulParts + 1> start{};
  double bytes = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    start[i + 1] = start[i] + weights_of(parts[i]).groups();
    bytes += static_cast<double>(weights_of(parts[i]).bytes());
  }
  const int64_t groups = start[parts.size()];
  const auto run = [&](int worker, int64_t begin, int64_t end) {
    for (size_t i = 0; i < parts.size(); ++i) {
      const int64_t from = std::max(begin, start[i]) - start[i], to = std::min(end, start[i + 1]) - start[i];
      if (from < to) f(worker, parts[i], from, to);
    }
  };
  const int threads = ctx.pool->size();
  const double work = bytes * static_cast<double>(std::max<int64_t>(1, m / 4));
  if (threads == 1 || work < kInlineBytes) return run(0, 0, groups);
  const int64_t chunks = std::min<int64_t>(
      groups, std::clamp<int64_t>(static_cast<int64_t>(work / kChunkBytes), threads, 4 * threads));
  ctx.pool->parallel_for(chunks, [&](int worker, int64_t begin, int64_t end) {
    run(worker, groups * begin / chunks, groups * end / chunks);
  });
}

void multiply_codes(const Context& ctx, bool exact, int64_t m, const float* a, int64_t lda,
                    std::span<const LowBitPart> parts, std::span<std::byte> scratch) {
  const LowBitKernels& kernels = *ctx.table->low_bit;
  const int64_t k = parts[0].weights->form.columns, steps = parts[0].weights->steps();
  const int count = low_bit_digits(exact);
  const int64_t most = rows_at_once(m, k, count);
  Scratch memory(scratch);
  auto* const words = memory.take<int32_t>(most * steps * 8 * count);
  auto* const numbers = memory.take<float>(most * steps * low_bit_numbers(count));
  if (!words || !numbers) return;
  const int64_t turns = ceil_div(m, most);
  for (int64_t turn = 0; turn < turns; ++turn) {
    const int64_t first = std::min(m, turn * most), rows = std::min(most, m - first);
    const Digits digits{{rows, kernels.most_rows[exact]}, steps, count, words, numbers};
    for_range(ctx, rows, 16.0 * static_cast<double>(k), 1, [&](int, int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t set = digits.sets.begin_of(row);
        kernels.quantize[exact](a + (first + row) * lda, k, digits.sets.size_at(set), row - set,
                                digits.words_at(set), digits.numbers_at(set));
      }
    });
    for_groups(ctx, parts, rows, [&](int, const LowBitPart& part, int64_t begin, int64_t end) {
      multiply_groups(kernels, exact, part, digits, first, begin, end);
    });
  }
}

std::array<MatmulPart, kMaxMatmulParts> as_matmul(std::span<const LowBitPart> parts) {
  std::array<MatmulPart, kMaxMatmulParts> out;
  for (size_t i = 0; i < parts.size(); ++i) {
    out[i].low_bit = parts[i].weights;
    out[i].n = parts[i].weights->form.rows;
    out[i].bias = parts[i].bias;
    out[i].c = parts[i].c;
    out[i].ldc = parts[i].ldc;
    out[i].accumulate = parts[i].accumulate;
  }
  return out;
}

}  // namespace

LowBitArgs low_bit_arguments(const LowBitMatrix& w, int64_t group) {
  LowBitArgs g;
  g.group_bytes = w.group_bytes();
  g.group = w.data + group * g.group_bytes;
  g.groups = 1;
  g.zeros_at = w.zeros_at();
  g.codes_at = w.codes_at();
  g.steps = w.steps();
  g.block_steps = w.block_steps();
  g.half_scales = w.form.half_scales;
  g.zero = w.form.zero == LowBitForm::Zero::kCenter  ? kZeroCenter
           : w.form.zero == LowBitForm::Zero::kCodes ? kZeroCodes
                                                     : kZeroMinimum;
  return g;
}

size_t low_bit_scratch_bytes(int64_t m, int64_t k, int n_threads) {
  const int64_t steps = ceil_div(k, 32);
  int64_t bytes = kDecodeDepth * kLowBitGroup * 4 * n_threads;
  for (const bool exact : {false, true}) {
    const int digits = low_bit_digits(exact);
    bytes = std::max(bytes, rows_at_once(m, k, digits) * steps * step_bytes(digits));
  }
  const size_t pieces = m >= kPieceRowsMin ? pieces_scratch_bytes(m, k, n_threads) : 0;
  return std::max(static_cast<size_t>(bytes + 256), pieces);
}

void low_bit_decoded(const Context& ctx, int64_t m, const float* a, int64_t lda,
                     std::span<const MatmulPart> parts, std::span<std::byte> scratch) {
  const int64_t k = parts[0].low_bit->form.columns;
  Scratch memory(scratch);
  const int64_t floats = kDecodeDepth * kLowBitGroup;
  auto* const panels = memory.take<float>(floats * ctx.pool->size());
  if (!panels) return;
  for_groups(ctx, parts, m, [&](int worker, const MatmulPart& part, int64_t begin, int64_t end) {
    float* const panel = panels + worker * floats;
    for (int64_t group = begin; group < end; ++group) {
      const int64_t column = group * kLowBitGroup, n = std::min(kLowBitGroup, part.n - column);
      for (int64_t k0 = 0; k0 < std::max<int64_t>(k, 1); k0 += kDecodeDepth) {
        const int64_t depth = std::min(kDecodeDepth, k - k0);
        decode_low_bit(*part.low_bit, group, k0, depth, panel, kLowBitGroup);
        for (int64_t row = 0; row < m; row += kStreamRows) {
          ctx.table->gemv_kn[kElementF32](
              std::min(kStreamRows, m - row), n, depth, a + row * lda + k0, lda, panel, kLowBitGroup,
              part.bias && k0 == 0 ? part.bias + column : nullptr, part.accumulate || k0 > 0,
              part.c + row * part.ldc + column, part.ldc);
        }
      }
    }
  });
}

void low_bit_matmul(const Context& ctx, Precision precision, int64_t m, const float* a, int64_t lda,
                    std::span<const LowBitPart> parts, std::span<std::byte> scratch) {
  if (m <= 0 || parts.empty()) return;
  const int64_t k = parts[0].weights->form.columns;
  const auto dense = as_matmul(parts);
  const std::span<const MatmulPart> as_parts(dense.data(), parts.size());
  const bool exact = precision == Precision::kExact;
  if (!ctx.table->low_bit) return low_bit_decoded(ctx, m, a, lda, as_parts, scratch);
  if (m >= kPieceRowsMin && ctx.table->pieces && matmul_pieces(ctx, m, k, a, lda, as_parts, scratch, !exact))
    return;
  multiply_codes(ctx, exact, m, a, lda, parts, scratch);
}

}  // namespace decant::kernels
