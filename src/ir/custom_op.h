#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "ir/op.h"
#include "ir/tensor.h"

namespace decant::ir {

/// An operator that a program brings along; what OpDef is for the table's. Immutable and thread-safe.
class CustomOp {
 public:
  virtual ~CustomOp() = default;
  virtual Status infer(InferContext& context) const = 0;
  virtual Result<std::vector<Tensor>> eval(const Node& node, std::span<const Tensor* const> inputs) const = 0;
};

}  // namespace decant::ir
