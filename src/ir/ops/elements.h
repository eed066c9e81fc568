#pragma once

#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "base/status.h"
#include "ir/tensor.h"

namespace decant::ir {

/// Reference kernels compute in three types: double for every float type, uint64_t for unsigned integers,
/// int64_t for signed integers and bool. Tensors are read into and made from vectors of these.

/// Elements [begin, begin + out.size()) as C, one of double, int64_t, uint64_t. Floats become integers by
/// truncation, saturating, NaN as 0; integers wrap. Precondition: the range lies inside the tensor.
template <typename C>
void read_range(const Tensor& tensor, int64_t begin, std::span<C> out);

template <typename C>
std::vector<C> read(const Tensor& tensor) {
  std::vector<C> out(static_cast<size_t>(tensor.elements()));
  read_range<C>(tensor, 0, std::span<C>(out));
  return out;
}

/// Writes elements at `begin`, rounding floats to nearest even; integers wrap; bool is "not zero".
template <typename C>
void write_range(Tensor& tensor, int64_t begin, std::span<const C> values);

/// A new tensor. Precondition: the dims have values.size() elements.
template <typename C>
Result<Tensor> make_tensor(DType dtype, std::vector<int64_t> dims, const std::vector<C>& values) {
  DECANT_ASSIGN(Tensor out, Tensor::allocate(dtype, std::move(dims)));
  write_range<C>(out, 0, std::span<const C>(values));
  return out;
}

/// Smallest and largest value of an integer dtype (of 64 bits: cut to int64's range).
struct IntegerRange {
  int64_t min, max;
};
IntegerRange integer_range(DType dtype);

/// Calls `f(std::type_identity<C>{})` with the compute type of the dtype.
template <typename F>
auto with_compute_type(DType dtype, F&& f) {
  if (is_float(dtype) || is_small_float(dtype)) return f(std::type_identity<double>{});
  if (is_integer(dtype) && !is_signed_integer(dtype)) return f(std::type_identity<uint64_t>{});
  return f(std::type_identity<int64_t>{});
}

/// The dtype of an ONNX TensorProto.DataType code, as attributes like Cast's `to` hold it; kUndefined when
/// there is none.
DType dtype_from_onnx_code(int64_t code);
int64_t onnx_code(DType dtype);

}  // namespace decant::ir
