#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/encoding.h"
#include "base/packed.h"

namespace decant {

/// What the weights of a product y[n] = sum over k of w[n, k] x[k] are made of when each is a code of few
/// bits and blocks of k share a scale. With c in [0, 2^bits):
///   kCenter:   w = (c - 2^(bits - 1)) * scale
///   kCodes:    w = (c - zero) * scale, zero an integer in [0, 2^bits)
///   kMinimum:  w = c * scale + zero
struct LowBitForm {
  enum class Zero : uint8_t { kCenter, kCodes, kMinimum };

  int64_t rows = 0, columns = 0;  ///< n and k
  int bits = 4;                   ///< 4 or 8
  int64_t block = 32;  ///< of k with one scale: 16, a multiple of 32, or `columns`; the last may be shorter
  Zero zero = Zero::kCenter;
  bool half_scales = false;  ///< scales, and zeros of kMinimum, are exact as float16

  int64_t blocks() const { return (columns + block - 1) / block; }
};

/// What weights are read from and how: addresses of codes, scales and zeros, and the numbers of their layout.
/// Equal sources are the same weights, for as long as what they were read from lives.
using LowBitSource = std::vector<uint64_t>;

/// Reads weights of a file in that form. Views: what they read must outlive them. Immutable, thread-safe.
class LowBitRows {
 public:
  virtual ~LowBitRows() = default;
  const LowBitForm& form() const { return form_; }
  /// Rows [first, first + rows): codes [rows][columns], scales and zeros [rows][blocks]. Zeros of kCenter are
  /// not written. Precondition: rows <= 16.
  virtual void read(int64_t first, int64_t rows, uint8_t* codes, float* scales, float* zeros) const = 0;
  virtual LowBitSource source() const = 0;

 protected:
  LowBitForm form_;
};

/// The rows of a packed matrix, or with `transposed` its columns, as rows of such weights; null when the
/// layout has no such form (values from a table, columns in activation order, other blocks). Precondition:
/// check_packed.
std::unique_ptr<LowBitRows> low_bit_rows(const PackedLayout& layout, const PackedBytes& bytes,
                                         bool transposed);

/// The same for [rows, columns] in a GGUF block encoding (not kDense), columns a multiple of its blocks. Row
/// i of the result is row `stored(i)` of `bytes`; null: i. The same bytes always have the same order.
std::unique_ptr<LowBitRows> low_bit_rows(Encoding encoding, std::span<const std::byte> bytes, int64_t rows,
                                         int64_t columns, std::function<int64_t(int64_t)> stored);

}  // namespace decant
