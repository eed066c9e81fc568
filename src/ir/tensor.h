#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/status.h"

namespace decant::ir {

/// A dense tensor in host memory, row-major, contiguous. A handle: copies share the data. Tensors returned by
/// `allocate` may be written by their creator until they are shared; everything else treats data as
/// read-only. Elements under a byte are packed as in ONNX; those of kString are std::string objects.
class Tensor {
 public:
  Tensor() = default;

  /// Uninitialised memory (empty strings, zeros where elements share bytes), 64-byte aligned. Fails when the
  /// dims are negative or the size passes `kMaxTensorBytes`.
  static Result<Tensor> allocate(DType dtype, std::vector<int64_t> dims);
  /// View of memory that `owner` keeps alive. `data` may be unaligned. Precondition: it holds all elements.
  static Tensor view(DType dtype, std::vector<int64_t> dims, const void* data,
                     std::shared_ptr<const void> owner);
  /// Rank 0 or 1 integer tensors, as used for shapes and axes.
  static Tensor scalar(int64_t value);
  static Tensor scalar(float value);
  static Tensor vector(std::span<const int64_t> values);

  DType dtype() const { return dtype_; }
  const std::vector<int64_t>& dims() const { return dims_; }
  size_t rank() const { return dims_.size(); }
  int64_t elements() const { return elements_; }
  /// Bytes of the elements; 0 for strings.
  size_t bytes() const {
    return static_cast<size_t>(bytes_of(dtype_, static_cast<uint64_t>(elements_)).value_or(0));
  }

  const void* data() const { return data_; }
  void* mutable_data() { return const_cast<void*>(data_); }
  template <typename T>
  const T* data_as() const {
    return static_cast<const T*>(data_);
  }
  template <typename T>
  T* mutable_data_as() {
    return static_cast<T*>(mutable_data());
  }

  /// Same data, other dims. Precondition: equal element counts.
  Tensor reshaped(std::vector<int64_t> dims) const;

  /// Elements as int64 (integers, bool) or double (any type but complex and string); index in [0,
  /// elements()). Unaligned-safe.
  int64_t int_at(int64_t index) const;
  double double_at(int64_t index) const;
  std::vector<int64_t> to_ints() const;
  /// Precondition: the dtype is kString and the index is inside.
  const std::string& string_at(int64_t index) const { return data_as<std::string>()[index]; }

  std::shared_ptr<const void> owner() const { return owner_; }

 private:
  DType dtype_ = DType::kUndefined;
  std::vector<int64_t> dims_;
  int64_t elements_ = 0;
  const void* data_ = nullptr;
  std::shared_ptr<const void> owner_;
};

/// "float32[2,3]" for messages.
std::string describe(DType dtype, std::span<const int64_t> dims);
inline std::string describe(const Tensor& t) { return describe(t.dtype(), t.dims()); }

}  // namespace decant::ir
