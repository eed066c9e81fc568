#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/low_bit.h"
#include "kernels/kernels.h"

namespace decant::kernels {

/// Weights [n, k] of a product, packed for every instruction set alike. Rows of the output go in groups of
/// 16, k in steps of 32. A group is, each part filled up to 64 bytes:
///   scales   [blocks][16] of f16 or f32
///   zeros    [blocks][16] of u8 (kCodes) or like the scales (kMinimum)
///   codes    [steps][4 or 8 vectors][16 rows][4]: byte i of row r of vector j is
///     8 bits: the code of k = 4j + i
///     4 bits: those of k = 4j + i in the low half, of k = 16 + 4j + i in the high half
/// Rows past n have scales and minimums of 0. Codes past k are 0; nothing may be multiplied by them.
struct LowBitMatrix {
  LowBitForm form;
  const std::byte* data = nullptr;  ///< groups() * group_bytes(), on a cache line

  int64_t groups() const { return (form.rows + 15) / 16; }
  int64_t steps() const { return (form.columns + 31) / 32; }
  /// Whether the two halves of a step have scales of their own.
  bool halves() const { return form.block == 16 && form.columns > 16; }
  /// Steps with one scale; the last block may have fewer.
  int64_t block_steps() const {
    return form.block >= form.columns ? (steps() > 0 ? steps() : 1) : halves() ? 1 : form.block / 32;
  }
  int64_t blocks() const { return halves() ? 2 * steps() : (steps() + block_steps() - 1) / block_steps(); }
  int64_t scale_bytes() const { return form.half_scales ? 2 : 4; }
  int64_t zeros_at() const { return (blocks() * 16 * scale_bytes() + 63) / 64 * 64; }
  int64_t codes_at() const {
    const int64_t each = form.zero == LowBitForm::Zero::kCenter  ? 0
                         : form.zero == LowBitForm::Zero::kCodes ? 1
                                                                 : scale_bytes();
    return zeros_at() + (blocks() * 16 * each + 63) / 64 * 64;
  }
  int64_t group_bytes() const { return codes_at() + steps() * (form.bits == 4 ? 256 : 512); }
  size_t bytes() const { return static_cast<size_t>(groups() * group_bytes()); }
};

/// Packs `rows` (of the same form) into `data`, `matrix.bytes()` of them, 64-byte aligned; parallel, a group
/// at a time.
void pack_low_bit(ThreadPool& pool, const LowBitRows& rows, const LowBitMatrix& matrix, std::byte* data);

/// Weights of rows [first, first + count) of k and group `group` as f32: out[i * stride + row of the group].
void decode_low_bit(const LowBitMatrix& matrix, int64_t group, int64_t first, int64_t count, float* out,
                    int64_t stride);

/// How exactly activations are multiplied with codes.
enum class Precision : uint8_t {
  /// In 22 bits for each block of 32, relative to its largest: as good as f32 products.
  kExact,
  /// In 8 bits for each block of 32: half a 127th of the block's largest activation at most.
  kFast,
};

/// One product C[M, N] (+)= A[M, K] W^T (+ bias[N]) of a group that shares A.
struct LowBitPart {
  const LowBitMatrix* weights = nullptr;
  const float* bias = nullptr;  ///< may be null
  float* c = nullptr;
  int64_t ldc = 0;
  bool accumulate = false;
};

/// Bytes of scratch for low_bit_matmul of these sizes; grows with m up to a bound.
size_t low_bit_scratch_bytes(int64_t m, int64_t k, int n_threads);

/// C (+)= A W^T for each of up to kMaxMatmulParts parts of equal k. Blocks of A that are not finite make the
/// sums that they are in NaN. `scratch` holds at least low_bit_scratch_bytes(m, k, pool size) bytes; with
/// less nothing is computed. Each element is summed in the same order whatever the number of threads.
void low_bit_matmul(const Context& ctx, Precision precision, int64_t m, const float* a, int64_t lda,
                    std::span<const LowBitPart> parts, std::span<std::byte> scratch);

}  // namespace decant::kernels
