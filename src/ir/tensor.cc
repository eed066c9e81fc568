#include "ir/tensor.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/checked.h"
#include "base/half.h"
#include "base/memory_limit.h"
#include "base/small_float.h"
#include "ir/datum.h"

namespace decant::ir {
namespace {

/// One tensor never takes more than this; larger requests come from hostile shapes.
constexpr uint64_t kMaxTensorBytes = uint64_t{1} << 40;

template <typename T>
T load(const void* data, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(data) + index * static_cast<int64_t>(sizeof(T)),
              sizeof(T));
  return value;
}

int64_t product(const std::vector<int64_t>& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

}  // namespace

Result<Tensor> Tensor::allocate(DType dtype, std::vector<int64_t> dims) {
  const auto elements = checked_elements(dims);
  const uint64_t object = dtype == DType::kString ? sizeof(std::string) : 0;
  const auto bytes = !elements     ? std::nullopt
                     : object != 0 ? checked_mul(*elements, object)
                                   : bytes_of(dtype, *elements);
  if (!bytes || *bytes > std::min(kMaxTensorBytes, memory_limit())) {
    return resource_error("a tensor of " + describe(dtype, dims) + " cannot be allocated");
  }
  Tensor t;
  t.dtype_ = dtype;
  t.elements_ = static_cast<int64_t>(*elements);
  t.dims_ = std::move(dims);
  if (dtype == DType::kString) {
    try {
      auto strings = std::make_shared<std::vector<std::string>>(*elements);
      t.data_ = strings->data();
      t.owner_ = std::move(strings);
    } catch (const std::exception&) {
      return resource_error("no memory for a tensor of " + describe(dtype, t.dims_));
    }
    return t;
  }
  constexpr std::align_val_t kAlignment{64};
  void* memory = ::operator new(*bytes ? *bytes : 1, kAlignment, std::nothrow);
  if (memory == nullptr) return resource_error("no memory for a tensor of " + describe(dtype, t.dims_));
  t.owner_ = std::shared_ptr<const void>(
      memory, [](const void* p) { ::operator delete (const_cast<void*>(p), std::align_val_t{64}); });
  t.data_ = memory;
  if (is_packed(dtype)) std::memset(memory, 0, *bytes);
  return t;
}

Tensor Tensor::view(DType dtype, std::vector<int64_t> dims, const void* data,
                    std::shared_ptr<const void> owner) {
  Tensor t;
  t.dtype_ = dtype;
  t.elements_ = product(dims);
  t.dims_ = std::move(dims);
  t.data_ = data;
  t.owner_ = std::move(owner);
  return t;
}

Tensor Tensor::scalar(int64_t value) {
  auto owner = std::make_shared<int64_t>(value);
  return view(DType::kInt64, {}, owner.get(), owner);
}

Tensor Tensor::scalar(float value) {
  auto owner = std::make_shared<float>(value);
  return view(DType::kFloat32, {}, owner.get(), owner);
}

Tensor Tensor::vector(std::span<const int64_t> values) {
  auto owner = std::make_shared<std::vector<int64_t>>(values.begin(), values.end());
  return view(DType::kInt64, {static_cast<int64_t>(values.size())}, owner->data(), owner);
}

Tensor Tensor::reshaped(std::vector<int64_t> dims) const {
  Tensor t = *this;
  t.dims_ = std::move(dims);
  return t;
}

int64_t Tensor::int_at(int64_t i) const {
  switch (dtype_) {
    case DType::kInt8:
      return load<int8_t>(data_, i);
    case DType::kInt16:
      return load<int16_t>(data_, i);
    case DType::kInt32:
      return load<int32_t>(data_, i);
    case DType::kInt64:
      return load<int64_t>(data_, i);
    case DType::kBool:
    case DType::kUInt8:
      return load<uint8_t>(data_, i);
    case DType::kUInt16:
      return load<uint16_t>(data_, i);
    case DType::kUInt32:
      return load<uint32_t>(data_, i);
    case DType::kUInt64:
      return static_cast<int64_t>(load<uint64_t>(data_, i));
    case DType::kInt4:
    case DType::kUInt4:
    case DType::kInt2:
    case DType::kUInt2: {
      const int bits = bits_of(dtype_);
      const int64_t v = packed_get(static_cast<const uint8_t*>(data_), bits, i);
      const bool is_signed = dtype_ == DType::kInt4 || dtype_ == DType::kInt2;
      return is_signed && v >= int64_t{1} << (bits - 1) ? v - (int64_t{1} << bits) : v;
    }
    default:
      return static_cast<int64_t>(double_at(i));
  }
}

double Tensor::double_at(int64_t i) const {
  switch (dtype_) {
    case DType::kFloat32:
      return load<float>(data_, i);
    case DType::kFloat64:
      return load<double>(data_, i);
    case DType::kFloat16:
      return f16_to_float(load<uint16_t>(data_, i));
    case DType::kBFloat16:
      return bf16_to_float(load<uint16_t>(data_, i));
    case DType::kUInt64:
      return static_cast<double>(load<uint64_t>(data_, i));
    case DType::kUndefined:
    case DType::kComplex64:
    case DType::kComplex128:
    case DType::kString:
      return 0;
    case DType::kFloat4E2M1:
      return small_to_float(dtype_, packed_get(static_cast<const uint8_t*>(data_), 4, i));
    case DType::kFloat8E4M3FN:
    case DType::kFloat8E4M3FNUZ:
    case DType::kFloat8E5M2:
    case DType::kFloat8E5M2FNUZ:
    case DType::kFloat8E8M0:
      return small_to_float(dtype_, load<uint8_t>(data_, i));
    default:
      return static_cast<double>(int_at(i));
  }
}

std::vector<int64_t> Tensor::to_ints() const {
  std::vector<int64_t> out(static_cast<size_t>(elements_));
  for (int64_t i = 0; i < elements_; ++i) out[static_cast<size_t>(i)] = int_at(i);
  return out;
}

std::string describe(DType dtype, std::span<const int64_t> dims) {
  std::string out(to_string(dtype));
  out += '[';
  for (size_t i = 0; i < dims.size(); ++i) out += (i ? "," : "") + std::to_string(dims[i]);
  return out + "]";
}

std::string describe(const Datum& datum) {
  if (datum.is_tensor()) return describe(datum.tensor());
  if (datum.is_empty()) return "an empty optional";
  return "a sequence of " + std::to_string(datum.items().size()) + " tensors";
}

}  // namespace decant::ir
