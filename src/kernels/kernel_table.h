#pragma once

// Included by files that are compiled for one instruction set: nothing here may need an ordinary header with
// inline functions.
#include <cstddef>
#include <cstdint>

namespace decant::kernels {

/// Element types of weights and caches, as indices of the tables below.
enum ElementType : int { kElementF32 = 0, kElementF16 = 1, kElementBf16 = 2, kElementTypes = 3 };

/// Rows [0, rows) of queries, all of one key/value head, against positions [begin, end). Scores of row r
/// count only for positions [row_begin[r], row_end[r]).
struct AttendArgs {
  int64_t rows = 0, qk_dim = 0, v_dim = 0;
  const float* q = nullptr;  ///< [rows][qk_dim], already scaled
  const void* k = nullptr;   ///< position 0
  int64_t k_stride = 0;
  const void* v = nullptr;
  int64_t v_stride = 0;
  int64_t begin = 0, end = 0;
  const int64_t* row_begin = nullptr;
  const int64_t* row_end = nullptr;
  const void* const* row_mask = nullptr;  ///< value of position 0 for each row, or null
  bool mask_is_bool = false;
  int64_t mask_stride = 1;
  float softcap = 0;
  float* max = nullptr;      ///< out: [rows], largest score; -inf when the row attends nothing
  float* sum = nullptr;      ///< out: [rows], sum of exp(score - max)
  float* acc = nullptr;      ///< out: [rows][v_dim], sum of exp(score - max) * value
  float* scratch = nullptr;  ///< attend_scratch(rows) floats
};

/// One row of scores of positions [begin, begin + n) in place: softcap, mask and bounds; becomes exp(score -
/// max), with `max` and `sum` updated. Returns the factor that sums over earlier positions must be scaled by.
struct SoftmaxStepArgs {
  float* scores = nullptr;
  int64_t begin = 0, n = 0;
  int64_t row_begin = 0, row_end = 0;
  const void* mask = nullptr;  ///< value of position 0, or null
  bool mask_is_bool = false;
  int64_t mask_stride = 1;
  float softcap = 0;
  float* max = nullptr;
  float* sum = nullptr;
};

/// C[rows, tile_cols] (+)= A B (+ bias) over k steps, A packed as [k][a_stride].
struct TileArgs {
  int64_t k = 0;
  const float* a = nullptr;
  const void* b =
      nullptr;  ///< of first_tile: rows of B in place, ldb apart, with tile_cols readable elements
  int64_t ldb = 0;
  float* packed = nullptr;  ///< B as [k][tile_cols]: first_tile writes it, tile reads it
  float* c = nullptr;
  int64_t ldc = 0;
  const float* bias = nullptr;
  bool accumulate = false;
  // Step i prefetches row i of packed A at `ahead`, and `fetch` + i * `fetch_stride` bytes to the second
  // cache level. Neither need be readable.
  const float* ahead = nullptr;
  const std::byte* fetch = nullptr;
  int64_t fetch_stride = 0;
};

/// Positions that attend handles at a time; scratch is sized by it.
inline constexpr int64_t kAttendChunk = 64;
constexpr int64_t attend_scratch(int64_t rows) { return rows * (kAttendChunk + 1) + 4 * 16 * 16; }

/// Products of 8-bit numbers without their zero points that fit one 32-bit sum.
inline constexpr int64_t kIntegerChunk = 16384;

/// Floats between the rows of scores in attention of many queries.
inline constexpr int kScoreStride = 128;

inline constexpr int kMaxTileRows = 16;
inline constexpr int kTableUnaryOps = 13;  // the UnaryOps before kSin; the rest have no vector form
inline constexpr int kTableBinaryOps = 6;

/// Products on units that multiply bf16 and add f32. An f32 is the sum of three bf16 pieces (f16: two, bf16:
/// one), and the products of pieces that weigh 2^-16 or more together are as close as f32 products (Henry,
/// Tang & Heinecke 2019). Subnormal pieces count as zero.
struct PieceTileArgs {
  int64_t steps = 0;            ///< of k, 32 each
  const uint16_t* a = nullptr;  ///< 16 rows: [steps][kPieces][16][32]
  int64_t a_stride = 0;         ///< to the next 16 rows
  const uint16_t* b = nullptr;  ///< 32 columns: [steps][pieces][2 halves][16 pairs of k][16][2]
  float* c = nullptr;
  int64_t ldc = 0;
  bool accumulate = false;
  // Each step prefetches `fetch_bytes` of the next `fetch_rows` rows at `fetch` to the second cache level.
  const std::byte* fetch = nullptr;
  int64_t fetch_stride = 0, fetch_rows = 0, fetch_bytes = 0;
};

inline constexpr int64_t kPieces = 3, kPieceRows = 16, kPieceCols = 32, kPieceStep = 32;

struct PieceKernels {
  // Around all use of tiles by a thread.
  void (*enter)();
  void (*leave)();
  int pieces[kElementTypes];
  // False when a value has no pieces: an infinity, a NaN, or larger than any bf16.
  bool (*pack_a)(int64_t rows, int64_t k, const float* a, int64_t lda, uint16_t* packed);
  using PackB = bool (*)(int64_t k, int64_t n, const void* b, int64_t ldb, uint16_t* packed);
  PackB pack_b_kn[kElementTypes];
  PackB pack_b_nk[kElementTypes];
  using Tile = void (*)(const PieceTileArgs& args);
  Tile tile[kElementTypes][2];  ///< of 16 and of 32 rows
  // The same with only the first piece of both: bf16 products.
  bool (*pack_a_once)(int64_t rows, int64_t k, const float* a, int64_t lda, uint16_t* packed);
  PackB pack_b_once;
  Tile tile_once[2];
};

/// Activations of `m` rows beside each other, in steps of 32 of k: 8-bit digits, one for kFast, three for
/// kExact: x = scale * (digit 2 * 2^14 + digit 1 * 2^7 + digit 0). Digits are stored as
/// [steps][8 words of 4 k][m][digits], numbers as [steps][m][low_bit_numbers(digits)]: the scale; the sum of
/// the 32 x; for each digit -8 times its sum (as int32); then both again for the first 16.
constexpr int low_bit_digits(bool exact) { return exact ? 3 : 1; }
constexpr int low_bit_numbers(int digits) { return 1 + 2 * (1 + digits); }

enum LowBitZero : int { kZeroCenter = 0, kZeroCodes = 1, kZeroMinimum = 2 };

/// Some rows of activations times whole groups of a LowBitMatrix (low_bit.h).
struct LowBitArgs {
  const std::byte* group = nullptr;  ///< the first
  int64_t groups = 0, group_bytes = 0, zeros_at = 0, codes_at = 0;
  int64_t steps = 0, block_steps = 0;
  bool half_scales = false;
  int zero = kZeroCenter;
  const int32_t* digits = nullptr;
  const float* numbers = nullptr;
  float* c = nullptr;
  int64_t ldc = 0;
  int64_t n = 0;  ///< columns of C that there are, from the first group's on
  const float* bias = nullptr;
  bool accumulate = false;
  int64_t ahead = 0;  ///< bytes that codes are prefetched ahead
};

struct LowBitKernels {
  int most_rows[2];  ///< a power of two, at most 8; index: fast, exact
  using Rows = void (*)(const LowBitArgs& args);
  Rows rows[2][2][2][4];  ///< [exact][8 bits][two scales in a step][log2 of the rows]
  /// Row `row` of `m`.
  using Quantize = void (*)(const float* x, int64_t k, int64_t m, int64_t row, int32_t* digits,
                            float* numbers);
  Quantize quantize[2];
  /// Weights of the `steps` first steps at `codes` (step number `first`) as f32 [steps * 32][stride].
  void (*decode[2][2])(const LowBitArgs& args, int64_t first, int64_t steps, float* out, int64_t stride);
};

/// The inner kernels of one instruction set: single-threaded, no blocking policy. Filled once, then
/// read-only.
struct KernelTable {
  const char* name;

  // C[m, n] (+)= A[m, k] B for m <= 8, B read once in place: [k, n] or [n, k].
  using Gemv = void (*)(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const void* b,
                        int64_t ldb, const float* bias, bool accumulate, float* c, int64_t ldc);
  Gemv gemv_kn[kElementTypes];
  Gemv gemv_nk[kElementTypes];

  // Blocked product: tiles of up to tile_rows x tile_cols. A is packed as [k][a_stride], B as [k][tile_cols],
  // zero-padded.
  int tile_rows, tile_cols, a_stride;
  void (*pack_a)(int64_t rows, int64_t k, const float* a, int64_t lda, float* packed);
  using PackB = void (*)(int64_t k, int64_t n, const void* b, int64_t ldb, float* packed);
  PackB pack_b_kn[kElementTypes];
  PackB pack_b_nk[kElementTypes];
  // Index rows - 1. first_tile also packs the panel of B for the tiles below it.
  using Tile = void (*)(const TileArgs& args);
  Tile tile[kMaxTileRows];
  Tile first_tile[kElementTypes][kMaxTileRows];
  // The same with row i of A at i * kScoreStride, not packed.
  Tile value_tile[kMaxTileRows];
  Tile first_value_tile[kElementTypes][kMaxTileRows];
  const PieceKernels* pieces;  ///< null: tiles are as fast

  void (*attend[kElementTypes])(const AttendArgs& args);
  float (*softmax_step)(const SoftmaxStepArgs& args);
  void (*scale)(float factor, float* x, int64_t n);

  void (*rms_norm_row)(const float* x, const float* residual, float* sum_out, const float* weight, float eps,
                       float* y, int64_t n);
  void (*layer_norm_row)(const float* x, const float* weight, const float* bias, float eps, float* y,
                         int64_t n);
  void (*softmax_row)(const float* x, float* y, int64_t n);
  void (*rotary_half)(const float* x, const float* cos, const float* sin, float* out, int64_t half);
  void (*rotary_interleaved)(const float* x, const float* cos, const float* sin, float* out, int64_t half);

  void (*unary[kTableUnaryOps])(const float* x, float* y, int64_t n);
  void (*gated[kTableUnaryOps])(const float* gate, const float* up, float* out, int64_t n);
  void (*binary[kTableBinaryOps])(const float* a, const float* b, float* out, int64_t n);
  void (*binary_scalar[kTableBinaryOps])(const float* a, float b, float* out, int64_t n);
  void (*scalar_binary[kTableBinaryOps])(float a, const float* b, float* out, int64_t n);
  const LowBitKernels* low_bit;  ///< null: weights are decoded

  float (*max_value)(const float* x, int64_t n);
  void (*axpy)(float a, const float* x, float* y, int64_t n);  // y += a x

  // c[m, n] += a[m, k] b[n, k]: b of uint8 (0) or int8 (1); a in [-255, 255].
  void (*integer_block[2])(int64_t m, int64_t n, int64_t k, const int16_t* a, int64_t lda, const void* b,
                           int64_t ldb, int32_t* c, int64_t ldc);
  void (*range_with_zero)(const float* x, int64_t n, float* low, float* high);
  void (*quantize_row)(const float* x, float scale, int32_t zero, int32_t lowest, uint8_t* y, int64_t n);

  void (*to_f32[kElementTypes])(const void* x, float* y, int64_t n);
  void (*from_f32[kElementTypes])(const float* x, void* y, int64_t n);
};

/// One per instruction set that this build has; defined in simd/isa/.
const KernelTable* baseline_table();
const KernelTable* avx2_table();
const KernelTable* avx512_table();
const KernelTable* amx_table();
const KernelTable* neon_table();
/// With the dot products of AVX-512 VNNI.
const LowBitKernels* avx512_vnni_low_bit();

}  // namespace decant::kernels
