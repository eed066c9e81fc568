#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/low_bit.h"
#include "base/packed.h"
#include "base/status.h"
#include "ir/constant.h"

namespace decant::ir {

/// A constant whose elements stay packed where they are stored: a layout, and the constants that hold its
/// codes, scales, zero points and group indices; the last two may be null. They are dense and in memory, or
/// computed when read (ir/quantized_constant.h). Readers of elements get them decoded, a range of rows at a
/// time; kernels that know the layout take the codes as they are (Constant::packed).
struct PackedConstant {
  PackedLayout layout;
  ConstantPtr codes, scales, zeros, groups;
  /// In place of all that, for weights that are packed in another way or lie across: see low_bit_weights.
  std::function<std::unique_ptr<LowBitRows>(bool columns)> rows;

  PackedBytes bytes() const;  ///< precondition: in memory
};

/// The rows of a matrix, or with `columns` its columns, as the codes that they are decoded from; null when it
/// has no such form. The result views the constant.
std::unique_ptr<LowBitRows> low_bit_weights(const Constant& matrix, bool columns);

/// Whether a row of the constant is decoded by itself, without reading others.
bool decodes_rows(const Constant& constant);

/// A constant of `dims` (whose product is rows x columns of the layout) and float `dtype` (float32, float16,
/// bfloat16: what the decoded float32 values are rounded to). Fails when the layout does not fit its bytes.
Result<ConstantPtr> packed_constant(DType dtype, std::vector<int64_t> dims, PackedConstant packed);

}  // namespace decant::ir
