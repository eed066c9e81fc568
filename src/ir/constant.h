#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/status.h"
#include "ir/tensor.h"

namespace decant::ir {

struct PackedConstant;

/// Produces a constant's elements by ranges of its leading dim, so that a writer needs memory for one range
/// only. Implementations hold their inputs mapped and are immutable and thread-safe.
class RowSource {
 public:
  virtual ~RowSource() = default;
  /// Writes rows [begin, end) of the leading dim, dense and row-major, in the constant's dtype. `out` has
  /// exactly that many bytes.
  virtual Status read_rows(int64_t begin, int64_t end, std::span<std::byte> out) const = 0;
  /// The packed weights that the rows are decoded from; null when they are no such thing.
  virtual const PackedConstant* packed() const { return nullptr; }
};

/// A tensor known before the run: either bytes in memory (mapped from a file, or owned), or rows computed
/// when read. Immutable; shared by the values and attributes that use it.
class Constant {
 public:
  /// Dense bytes kept alive by `owner`; may be unaligned. Precondition: sizes agree.
  static std::shared_ptr<const Constant> from_bytes(DType dtype, std::vector<int64_t> dims,
                                                    std::span<const std::byte> bytes,
                                                    std::shared_ptr<const void> owner);
  static std::shared_ptr<const Constant> from_tensor(const Tensor& tensor);
  static std::shared_ptr<const Constant> from_rows(DType dtype, std::vector<int64_t> dims,
                                                   std::shared_ptr<const RowSource> source);

  DType dtype() const { return dtype_; }
  const std::vector<int64_t>& dims() const { return dims_; }
  int64_t elements() const { return elements_; }
  /// Bytes of the elements; 0 for strings.
  size_t bytes() const {
    return static_cast<size_t>(bytes_of(dtype_, static_cast<uint64_t>(elements_)).value_or(0));
  }

  /// The elements in memory without copying; empty dtype when they must be computed (see materialize).
  bool in_memory() const { return source_ == nullptr; }
  /// What computes the rows; null when they are in memory.
  const RowSource* row_source() const { return source_.get(); }
  /// Precondition: in_memory().
  Tensor tensor() const;
  /// The elements, computed into new memory where needed.
  Result<Tensor> materialize() const;
  /// Rows [begin, end) of the leading dim (a rank-0 constant has one row). Rows of elements under a byte must
  /// begin and end at whole bytes; strings have no bytes.
  Status read_rows(int64_t begin, int64_t end, std::span<std::byte> out) const;
  int64_t rows() const { return dims_.empty() ? 1 : dims_[0]; }
  /// How the elements are packed (ir/packed_constant.h); null for dense and otherwise computed ones.
  const PackedConstant* packed() const { return source_ ? source_->packed() : nullptr; }

 private:
  Constant() = default;
  DType dtype_ = DType::kUndefined;
  std::vector<int64_t> dims_;
  int64_t elements_ = 0;
  Tensor tensor_;
  std::shared_ptr<const RowSource> source_;
};
using ConstantPtr = std::shared_ptr<const Constant>;

/// The same values in another dtype / with the two axes of a matrix exchanged; computed when read, nothing is
/// copied. No-ops return the argument, and a transpose of a transpose the matrix that was transposed first.
ConstantPtr cast_constant(ConstantPtr constant, DType dtype);
ConstantPtr transpose_constant(ConstantPtr matrix);

}  // namespace decant::ir
