#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "decant/dtype.h"

namespace decant {

/// One dim of a declared shape: a number, or an expression that a run gives its value, such as "batch" or
/// "past + sequence".
struct Dim {
  int64_t size = -1;   ///< -1: not a number
  std::string symbol;  ///< empty for numbers

  Dim() = default;
  Dim(int64_t number) : size(number) {}                           // NOLINT: implicit by design
  Dim(std::string expression) : symbol(std::move(expression)) {}  // NOLINT: implicit by design
  bool operator==(const Dim&) const = default;
};

/// Dtype and shape of a value. No dims: the rank is not known.
struct TensorType {
  DType dtype = DType::kUndefined;
  std::optional<std::vector<Dim>> dims;
};

/// An input or output of a model.
struct TensorInfo {
  std::string name;
  TensorType type;
};

}  // namespace decant
