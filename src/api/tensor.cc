#include "decant/tensor.h"

#include <cstring>

#include "base/checked.h"
#include "base/status.h"
#include "ir/tensor.h"

namespace decant {
namespace {

constexpr uint64_t kMaxBytes = uint64_t{1} << 40;

}  // namespace

Result<Tensor> Tensor::make(DType dtype, std::vector<int64_t> dims, void* data, bool writable) {
  const auto elements = checked_elements(dims);
  const auto bytes = elements ? bytes_of(dtype, *elements) : std::nullopt;
  if (dtype == DType::kUndefined || dtype == DType::kString || !bytes || *bytes > kMaxBytes) {
    return invalid_argument("a tensor of " + ir::describe(dtype, dims) + " is impossible");
  }
  if (!data && *bytes > 0)
    return invalid_argument("a tensor of " + ir::describe(dtype, dims) + " without memory");
  Tensor t;
  t.dtype_ = dtype;
  t.writable_ = writable;
  t.dims_ = std::move(dims);
  t.elements_ = static_cast<int64_t>(*elements);
  t.data_ = data;
  return t;
}

Result<Tensor> Tensor::zeros(DType dtype, std::vector<int64_t> dims) {
  DECANT_ASSIGN(ir::Tensor memory, ir::Tensor::allocate(dtype, dims));
  std::memset(memory.mutable_data(), 0, memory.bytes());
  DECANT_ASSIGN(Tensor t, make(dtype, std::move(dims), memory.mutable_data(), true));
  t.owner_ = std::const_pointer_cast<void>(memory.owner());
  return t;
}

Result<Tensor> Tensor::copy_bytes(DType dtype, std::vector<int64_t> dims, const void* data, size_t bytes) {
  DECANT_ASSIGN(Tensor t, zeros(dtype, std::move(dims)));
  if (t.bytes() != bytes) {
    return invalid_argument(std::to_string(bytes) + " bytes were given for a tensor of " +
                            ir::describe(dtype, t.dims()));
  }
  if (bytes) std::memcpy(t.data_, data, bytes);
  return t;
}

Result<Tensor> Tensor::borrow(DType dtype, std::vector<int64_t> dims, void* data) {
  return make(dtype, std::move(dims), data, true);
}

Result<Tensor> Tensor::borrow(DType dtype, std::vector<int64_t> dims, const void* data) {
  return make(dtype, std::move(dims), const_cast<void*>(data), false);
}

Result<Tensor> Tensor::borrow(DType dtype, std::vector<int64_t> dims, void* data,
                              std::shared_ptr<void> owner) {
  DECANT_ASSIGN(Tensor t, make(dtype, std::move(dims), data, true));
  t.owner_ = std::move(owner);
  return t;
}

Result<Tensor> Tensor::borrow(DType dtype, std::vector<int64_t> dims, const void* data,
                              std::shared_ptr<void> owner) {
  DECANT_ASSIGN(Tensor t, make(dtype, std::move(dims), const_cast<void*>(data), false));
  t.owner_ = std::move(owner);
  return t;
}

}  // namespace decant
