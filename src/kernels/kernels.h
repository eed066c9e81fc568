#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/cpu.h"
#include "base/dtype.h"
#include "base/status.h"

namespace decant {
class ThreadPool;
}

namespace decant::kernels {

/// Fast kernels on pointers and sizes. Activations and outputs are f32, accumulation is f32; weights and
/// caches are f32, f16 or bf16. No kernel allocates, fails or checks: shapes, strides and dtypes are the
/// caller's to check. Strides ("ld", "stride") are in elements. Inputs and outputs must not overlap unless a
/// comment says so. Sizes of 0 are allowed and do nothing.

struct LowBitMatrix;

/// Inner kernels of one instruction set (kernel_table.h).
struct KernelTable;

/// The table of an instruction set, or null when this build has none. Lives forever.
const KernelTable* kernel_table(Isa isa);

/// What a call runs with. Two calls may run at once only with different pools.
struct Context {
  const KernelTable* table;
  ThreadPool* pool;
};

/// One product C[M,N] (+)= A[M,K] * B (+ bias[N]) of a group that shares A.
struct MatmulPart {
  const void* b = nullptr;          ///< [K,N] rows of ldb, or with `b_transposed` [N,K] rows of ldb
  DType b_dtype = DType::kFloat32;  ///< kFloat32, kFloat16 or kBFloat16
  bool b_transposed = false;
  int64_t ldb = 0;
  int64_t n = 0;
  const float* bias = nullptr;  ///< added once; may be null
  float* c = nullptr;
  int64_t ldc = 0;
  bool accumulate = false;                ///< adds to what C holds (a residual) instead of overwriting it
  const LowBitMatrix* low_bit = nullptr;  ///< for low_bit_matmul's own use: in place of B
};

inline constexpr size_t kMaxMatmulParts = 4;

/// Bytes of scratch that matmul / matmul_group may use for these sizes (64-byte aligned base not needed);
/// grows with m and n_threads only up to a bound. For a group pass the largest n.
size_t matmul_scratch_bytes(int64_t m, int64_t n, int64_t k, int n_threads);

/// C (+)= A * B for each part, in one parallel region for up to kMaxMatmulParts of them, so q/k/v or gate/up
/// are read as one stream. `scratch` holds at least matmul_scratch_bytes(m, largest n, k, pool size) bytes,
/// or the slow way is taken. m <= 8 streams B once in place (bound by memory), larger m packs panels of B
/// (bound by arithmetic). Each element is summed in the same order whatever the number of threads.
void matmul_group(const Context& ctx, int64_t m, int64_t k, const float* a, int64_t lda,
                  std::span<const MatmulPart> parts, std::span<std::byte> scratch);

inline void matmul(const Context& ctx, int64_t m, int64_t k, const float* a, int64_t lda,
                   const MatmulPart& part, std::span<std::byte> scratch) {
  matmul_group(ctx, m, k, a, lda, std::span<const MatmulPart>(&part, 1), scratch);
}

/// Strides of a 4-d tensor addressed as [batch, head, position, channel]; channel stride is 1. BSHD tensors
/// swap head and position.
struct AttentionStrides {
  int64_t batch = 0;
  int64_t head = 0;
  int64_t position = 0;
};

/// softmax(softcap(scale * q k^T) + mask) v for each batch and head; key/value head of query head h is
/// h / (q_heads / kv_heads). Query i of batch b attends key j when
///   j < kv_length  and  (!causal or j <= i + offset)  and  (window_left < 0 or j >= i + offset -
///   window_left)
///   and (no mask, or mask is f32 and not -inf, or mask is bool and true).
/// Only keys and values that some query may attend are read. A query that attends nothing gives zeros.
struct AttentionArgs {
  int64_t batch = 0, q_heads = 0, kv_heads = 0, q_len = 0;
  int64_t qk_dim = 0;  ///< channels of q and k
  int64_t v_dim = 0;   ///< channels of v and out

  const float* q = nullptr;
  AttentionStrides q_strides;
  const void* k = nullptr;
  AttentionStrides k_strides;
  const void* v = nullptr;
  AttentionStrides v_strides;
  DType kv_dtype = DType::kFloat32;  ///< kFloat32, kFloat16 or kBFloat16
  float* out = nullptr;
  AttentionStrides out_strides;

  int64_t kv_length = 0;                ///< valid positions of k and v
  const int64_t* kv_lengths = nullptr;  ///< per batch, instead of kv_length
  bool causal = false;
  int64_t offset = 0;                ///< position of query 0: past length
  const int64_t* offsets = nullptr;  ///< per batch, instead of offset
  int64_t window_left = -1;          ///< keys before the query's own that stay visible; -1: all

  const void* mask = nullptr;  ///< kFloat32 (added) or kBool (true: attend)
  DType mask_dtype = DType::kFloat32;
  int64_t mask_batch_stride = 0, mask_head_stride = 0;  ///< 0 broadcasts, in all four
  int64_t mask_query_stride = 0, mask_key_stride = 1;

  float scale = 1.0f;
  float softcap = 0.0f;    ///< > 0: x = softcap * tanh(x / softcap) on scaled scores, before the mask
  float empty_row = 0.0f;  ///< output of a query without any key
  /// [q_heads] scores that take part in the softmax and have no value; may be null. Not for queries that
  /// attend nothing.
  const float* sinks = nullptr;
};

/// Bytes of scratch for any kv_length; reads the sizes of `args` only. Grows with threads and head dims, not
/// with the cache.
size_t attention_scratch_bytes(const AttentionArgs& args, int n_threads);

/// `scratch` holds at least attention_scratch_bytes(args, pool size) bytes; with less nothing is computed.
void attention(const Context& ctx, const AttentionArgs& args, std::span<std::byte> scratch);

/// h = x (+ residual); y = h / sqrt(mean(h^2) + eps) * weight (Zhang & Sennrich 2019). weight [cols] may be
/// null (ones). With `residual` (stride ldx) h is also written to `sum_out` (stride ldx; may be x or
/// residual; may be null).
struct RmsNormArgs {
  int64_t rows = 0, cols = 0;
  const float* x = nullptr;
  const float* residual = nullptr;
  float* sum_out = nullptr;
  int64_t ldx = 0;
  const float* weight = nullptr;
  float eps = 0;
  float* y = nullptr;
  int64_t ldy = 0;
};
void rms_norm(const Context& ctx, const RmsNormArgs& args);

/// y = (x - mean) / sqrt(variance + eps) * weight + bias; weight and bias [cols] may be null.
void layer_norm(const Context& ctx, int64_t rows, int64_t cols, const float* x, int64_t ldx,
                const float* weight, const float* bias, float eps, float* y, int64_t ldy);

/// Softmax over each row; a row of only -inf gives NaN, as ONNX Softmax does.
void softmax(const Context& ctx, int64_t rows, int64_t cols, const float* x, int64_t ldx, float* y,
             int64_t ldy);

/// Rotates the first rotary_dim channels of each head by the angles whose cosines and sines are given; the
/// rest is copied. half-split: pairs (c, c + rotary_dim/2); interleaved: pairs (2c, 2c+1). out = (a cos - b
/// sin, b cos + a sin). The table row of (b, s) is positions[b * positions_batch_stride + s] when given, else
/// b * table_batch_rows + s; rows are table_row_stride apart and hold at least rotary_dim / 2 values.
struct RotaryArgs {
  int64_t batch = 0, heads = 0, seq = 0, head_dim = 0;
  int64_t rotary_dim = 0;  ///< even, <= head_dim
  bool interleaved = false;
  const float* x = nullptr;
  AttentionStrides x_strides;
  float* out = nullptr;  ///< may be x, with equal strides
  AttentionStrides out_strides;
  const float* cos = nullptr;
  const float* sin = nullptr;
  int64_t table_row_stride = 0;
  int64_t table_batch_rows = 0;        ///< 0: one table for every batch
  const int64_t* positions = nullptr;  ///< bounds are the caller's to check
  int64_t positions_batch_stride = 0;
};
void rotary(const Context& ctx, const RotaryArgs& args);

enum class UnaryOp : uint8_t {
  kSigmoid,
  kSilu,
  kTanh,
  kExp,
  kGeluErf,
  kGeluTanh,
  kErf,
  kRelu,
  kNeg,
  kAbs,
  kSqrt,
  kReciprocal,
  kSquare,
  kSin,
  kCos,
  kLog,
};
inline constexpr int kUnaryOps = 16;

/// y[i] = op(x[i]), i < n.
void unary(const Context& ctx, UnaryOp op, const float* x, float* y, int64_t n);

enum class BinaryOp : uint8_t { kAdd, kSub, kMul, kDiv, kMin, kMax };
inline constexpr int kBinaryOps = 6;

/// out[i] = op(a[i], b[i]), i < n.
void binary(const Context& ctx, BinaryOp op, const float* a, const float* b, float* out, int64_t n);

/// out[r, c] = op(a[r, c], b[c]): dense rows, b broadcast over rows.
void binary_row(const Context& ctx, BinaryOp op, const float* a, const float* b, float* out, int64_t rows,
                int64_t cols);

/// out[i] = op(a[i], b), or op(b, a[i]) with `swapped`.
void binary_scalar(const Context& ctx, BinaryOp op, const float* a, float b, float* out, int64_t n,
                   bool swapped = false);

/// out[r, c] = act(gate[r, c]) * up[r, c]; act is any UnaryOp (kSilu: SwiGLU). Row strides allow gate and up
/// to be halves of one matrix.
void gated(const Context& ctx, UnaryOp act, int64_t rows, int64_t cols, const float* gate, int64_t ld_gate,
           const float* up, int64_t ld_up, float* out, int64_t ld_out);

/// C[m, n] = (A[m, k] - a_zeros)(B[n, k] - b_zeros)^T in int32 (sums wrap) of dense 8-bit matrices; B is
/// transposed. Zero points: null, one, or one for each row of A / of B.
struct IntegerMatmulArgs {
  int64_t m = 0, n = 0, k = 0;
  const void* a = nullptr;
  bool a_signed = false;
  const int32_t* a_zeros = nullptr;
  int64_t a_zero_count = 0;
  const void* b = nullptr;
  bool b_signed = false;
  const int32_t* b_zeros = nullptr;
  int64_t b_zero_count = 0;
  int32_t* c = nullptr;
};
size_t integer_matmul_scratch_bytes(int64_t m, int64_t k);
/// `scratch` holds at least integer_matmul_scratch_bytes(m, k) bytes; with less nothing is computed.
void integer_matmul(const Context& ctx, const IntegerMatmulArgs& args, std::span<std::byte> scratch);

/// Smallest and largest of x and 0; NaNs are skipped.
void range_with_zero(const Context& ctx, const float* x, int64_t n, float* low, float* high);
/// y = saturate(round_half_even(x / scale) + zero) as uint8 or int8; scale != 0.
void quantize(const Context& ctx, const float* x, float scale, int32_t zero, bool is_signed, void* y,
              int64_t n);

/// Index of the largest value, the first of equals; NaNs are skipped; 0 when there is none. n >= 1.
int64_t argmax(const Context& ctx, const float* x, int64_t n);

/// kFloat32, kFloat16, kBFloat16 to and from f32 (round to nearest even).
void convert_to_f32(const Context& ctx, DType from, const void* x, float* y, int64_t n);
void convert_from_f32(const Context& ctx, DType to, const float* x, void* y, int64_t n);

}  // namespace decant::kernels
