#pragma once

#include <cstdint>
#include <vector>

#include "base/packed.h"
#include "base/status.h"
#include "ir/constant.h"

namespace decant::ir {

/// A constant whose elements stay packed where they are stored: a layout, and the (dense, in-memory)
/// constants that hold its codes, scales, zero points and group indices; the last two may be null. Readers of
/// elements get them decoded, a range of rows at a time; kernels that know the layout take the codes as they
/// are (Constant::packed).
struct PackedConstant {
  PackedLayout layout;
  ConstantPtr codes, scales, zeros, groups;

  PackedBytes bytes() const;
};

/// A constant of `dims` (whose product is rows x columns of the layout) and float `dtype` (float32, float16,
/// bfloat16: what the decoded float32 values are rounded to). Fails when the layout does not fit its bytes.
Result<ConstantPtr> packed_constant(DType dtype, std::vector<int64_t> dims, PackedConstant packed);

}  // namespace decant::ir
