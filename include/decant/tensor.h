#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "decant/dtype.h"
#include "decant/export.h"
#include "decant/status.h"

namespace decant {

/// The dtype of a C++ element type; kUndefined when there is none (float16 and bfloat16 are read as uint16_t
/// bits).
template <typename T>
constexpr DType dtype_of() {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<U, float>) return DType::kFloat32;
  if constexpr (std::is_same_v<U, double>) return DType::kFloat64;
  if constexpr (std::is_same_v<U, bool>) return DType::kBool;
  if constexpr (std::is_integral_v<U> && !std::is_same_v<U, bool>) {
    constexpr bool is_signed = std::is_signed_v<U>;
    if constexpr (sizeof(U) == 1) return is_signed ? DType::kInt8 : DType::kUInt8;
    if constexpr (sizeof(U) == 2) return is_signed ? DType::kInt16 : DType::kUInt16;
    if constexpr (sizeof(U) == 4) return is_signed ? DType::kInt32 : DType::kUInt32;
    if constexpr (sizeof(U) == 8) return is_signed ? DType::kInt64 : DType::kUInt64;
  }
  return DType::kUndefined;
}

/// Elements of somebody else's tensor: dense, row-major. Valid as long as its owner says.
struct TensorView {
  DType dtype = DType::kUndefined;
  std::span<const int64_t> dims;
  const void* data = nullptr;
  int64_t elements = 0;

  /// The elements as T. Empty unless a T is as large as an element.
  template <typename T>
  std::span<const T> as() const {
    if (sizeof(T) != size_of(dtype)) return {};
    return {static_cast<const T*>(data), static_cast<size_t>(elements)};
  }
};

/// The same, to be written.
struct MutableTensorView {
  DType dtype = DType::kUndefined;
  std::span<const int64_t> dims;
  void* data = nullptr;
  int64_t elements = 0;

  template <typename T>
  std::span<T> as() const {
    if (sizeof(T) != size_of(dtype)) return {};
    return {static_cast<T*>(data), static_cast<size_t>(elements)};
  }
};

/// A dense tensor in host memory: row-major, contiguous, of any rank (no dims: a scalar). A handle: copies
/// share the elements. Handles may be used from several threads; writing elements while someone reads them
/// may not happen.
class DECANT_EXPORT Tensor {
 public:
  Tensor() = default;

  /// Zeros, 64-byte aligned. invalid_argument for a negative dim or a size over 2^40 bytes, resource when
  /// there is no memory.
  static Result<Tensor> zeros(DType dtype, std::vector<int64_t> dims);

  /// A copy of `values`. invalid_argument when their number is not the product of the dims.
  template <typename T>
  static Result<Tensor> copy_of(std::span<const T> values, std::vector<int64_t> dims) {
    static_assert(dtype_of<T>() != DType::kUndefined, "no element type");
    return copy_bytes(dtype_of<T>(), std::move(dims), values.data(), values.size_bytes());
  }
  template <typename T>
  static Result<Tensor> copy_of(const std::vector<T>& values, std::vector<int64_t> dims) {
    return copy_of(std::span<const T>(values), std::move(dims));
  }
  /// The same from raw bytes; `bytes` must be the tensor's size.
  static Result<Tensor> copy_bytes(DType dtype, std::vector<int64_t> dims, const void* data, size_t bytes);

  /// A tensor over the caller's memory, which must hold all elements and outlive every handle and every run
  /// that uses it. The first form may be written (as an output, or a cache that is updated in place), the
  /// second may not.
  static Result<Tensor> borrow(DType dtype, std::vector<int64_t> dims, void* data);
  static Result<Tensor> borrow(DType dtype, std::vector<int64_t> dims, const void* data);
  /// The same over memory that `owner` keeps alive; it is released, from any thread, with the last handle.
  static Result<Tensor> borrow(DType dtype, std::vector<int64_t> dims, void* data,
                               std::shared_ptr<void> owner);
  static Result<Tensor> borrow(DType dtype, std::vector<int64_t> dims, const void* data,
                               std::shared_ptr<void> owner);

  DType dtype() const { return dtype_; }
  std::span<const int64_t> dims() const { return dims_; }
  size_t rank() const { return dims_.size(); }
  int64_t elements() const { return elements_; }
  size_t bytes() const { return bytes_of(dtype_, static_cast<uint64_t>(elements_)).value_or(0); }
  bool writable() const { return writable_; }

  const void* data() const { return data_; }
  /// Null unless writable.
  void* mutable_data() { return writable_ ? data_ : nullptr; }

  /// The elements as T; empty unless a T is as large as an element (and, for mutable_as, the tensor
  /// writable).
  template <typename T>
  std::span<const T> as() const {
    return view().as<T>();
  }
  template <typename T>
  std::span<T> mutable_as() {
    if (sizeof(T) != size_of(dtype_) || !writable_) return {};
    return {static_cast<T*>(data_), static_cast<size_t>(elements_)};
  }

  /// Valid as long as this handle is neither destroyed nor assigned to.
  TensorView view() const { return {dtype_, dims_, data_, elements_}; }

 private:
  static Result<Tensor> make(DType dtype, std::vector<int64_t> dims, void* data, bool writable);

  DType dtype_ = DType::kUndefined;
  bool writable_ = false;
  std::vector<int64_t> dims_;
  int64_t elements_ = 0;
  void* data_ = nullptr;
  std::shared_ptr<void> owner_;
};

}  // namespace decant
