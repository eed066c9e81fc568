#pragma once

#include "base/status.h"
#include "ir/tensor.h"

namespace decant::runtime {

/// A copy of `tensor` in memory of its own, in `dtype`: converted between floating-point types, or between
/// int32 and int64. Any other pair of different types is kInvalidArgument, an integer that does not fit
/// kOutOfRange.
Result<ir::Tensor> convert(const ir::Tensor& tensor, DType dtype);

}  // namespace decant::runtime
