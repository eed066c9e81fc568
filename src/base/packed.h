#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.h"
#include "base/status.h"

namespace decant {

/// How the weights of a matrix are packed into few bits: what MatMulNBits, GatherBlockQuantized, MatMulBnb4,
/// QMoE and DequantizeLinear over integers store. Element (r, c) is
///   (code - zero point) * scale,   or   table[code] * scale,
/// with code, zero point and scale as this says. Leading dims of a tensor count as rows.
struct PackedLayout {
  int64_t rows = 0, columns = 0;

  /// Codes: `bits` (1 to 8) each, the first one in the low bits of a byte, or with `high_first` (4 bits only)
  /// in the high ones; a row begins `row_bits` behind the one before. Unsigned, or two's complement.
  int bits = 4;
  int64_t row_bits = 0;
  bool high_first = false;
  bool is_signed = false;

  /// A scale for each block of block_rows x block_columns elements, row-major: ceil(rows / block_rows) x
  /// ceil(columns / block_columns) of float32, float16 or bfloat16. One for all: blocks of rows x columns.
  int64_t block_rows = 1, block_columns = 1;
  DType scale_dtype = DType::kFloat32;

  /// Zero points: one number for all, or for each block a code (packed like the codes of a matrix of blocks,
  /// rows `zero_row_bits` apart) or a number of zero_dtype.
  enum class Zero : uint8_t { kOne, kCodes, kNumbers };
  Zero zero = Zero::kOne;
  int zero_point = 0;
  int64_t zero_row_bits = 0;
  DType zero_dtype = DType::kFloat32;

  /// 16 values that 4-bit codes stand for, in place of the codes and zero points; null: numbers.
  const float* table = nullptr;

  int64_t scale_rows() const { return (rows + block_rows - 1) / block_rows; }
  int64_t scale_columns() const { return (columns + block_columns - 1) / block_columns; }
};

/// The bytes that a layout describes. `groups`, when given, names the block column of each column (activation
/// order): int32, `columns` of them.
struct PackedBytes {
  std::span<const std::byte> codes, scales, zeros, groups;
};

/// The values of bitsandbytes' 4-bit types (Dettmers et al. 2023, QLoRA; FP4 is sign, 2 exponent bits,
/// mantissa).
const float* nf4_table();
const float* fp4_table();

/// Fails when sizes are impossible, or the bytes are fewer than the layout needs. Reads `groups`.
Status check_packed(const PackedLayout& layout, const PackedBytes& bytes);

/// Elements [first, first + count) in row-major order as float32; all steps are float32. Preconditions:
/// check_packed, and the range lies inside the matrix. Bytes may have any alignment.
void decode_packed(const PackedLayout& layout, const PackedBytes& bytes, int64_t first, int64_t count,
                   float* out);

}  // namespace decant
