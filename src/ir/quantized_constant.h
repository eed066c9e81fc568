#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "base/dtype.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "ir/constant.h"

namespace decant::ir {

/// Threads that several matrices take turns to use.
struct SharedPool {
  explicit SharedPool(int threads) : pool(threads) {}
  ThreadPool pool;
  std::mutex mutex;
};

/// How a matrix is rounded to codes of few bits: see base/quantize_block.h for a block of a row.
struct Quantization {
  int bits = 4;        ///< 4 or 8
  int64_t block = 32;  ///< of columns with one scale: a power of two, 16 to 256
  bool zero_points = false;
  DType scale_dtype = DType::kFloat32;  ///< float32, float16 or bfloat16

  /// Bytes of codes, scales and zero points for rows x columns; a row's last block is padded.
  int64_t bytes(int64_t rows, int64_t columns) const;
};

/// What rounding did to a matrix: sums over its elements.
struct QuantizationError {
  double error = 0;   ///< of squared differences
  double signal = 0;  ///< of squares of the matrix
  /// Root of the quotient; 0 for a matrix of zeros.
  double relative() const;
};

/// Filled while the codes are read for the first time.
class QuantizedMatrix;

/// A float matrix [rows, columns] rounded by `how`: a constant of the same dims and dtype whose elements are
/// the decoded ones and whose packed() has its codes, scales and zero points as constants, in the layout of
/// MatMulNBits. Nothing is computed before they are read, rows at a time: codes first, front to back, then
/// scales, then zero points costs one pass over the matrix, any other order more. `pool` (null: none) shares
/// the work; results do not depend on it. Reading fails, naming `name`, on a weight that is NaN or infinite,
/// or too large for the type of the scales.
struct QuantizedConstant {
  ConstantPtr constant;
  /// What the rows read so far lost; final once all codes were read.
  std::shared_ptr<const QuantizedMatrix> matrix;
};
QuantizedConstant quantized_constant(ConstantPtr matrix, const Quantization& how, std::string name,
                                     std::shared_ptr<SharedPool> pool);

/// Thread-safe.
QuantizationError error_of(const QuantizedMatrix& matrix);

/// What `how` would lose, from up to `rows` rows spread over the matrix. Errors as above.
Result<QuantizationError> sample_quantization(const Constant& matrix, const Quantization& how,
                                              const std::string& name, int64_t rows);

}  // namespace decant::ir
