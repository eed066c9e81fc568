#include "ir/ops/index.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "base/small_float.h"

namespace decant::ir {

Dims strides_of(std::span<const int64_t> dims) {
  Dims strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) {
    // Zero-sized tensors may have other dims of any size; their strides are never used.
    if (__builtin_mul_overflow(strides[i], dims[i], &strides[i - 1])) strides[i - 1] = 0;
  }
  return strides;
}

Dims broadcast_strides(std::span<const int64_t> dims, std::span<const int64_t> out) {
  const Dims own = strides_of(dims);
  Dims strides(out.size(), 0);
  const size_t pad = out.size() - dims.size();
  for (size_t i = 0; i < dims.size(); ++i) {
    strides[pad + i] = dims[i] == 1 ? 0 : own[i];
  }
  return strides;
}

std::optional<Dims> broadcast_dims(std::span<const int64_t> a, std::span<const int64_t> b) {
  if (a.size() < b.size()) std::swap(a, b);
  Dims out(a.begin(), a.end());
  const size_t pad = a.size() - b.size();
  for (size_t i = 0; i < b.size(); ++i) {
    int64_t& d = out[pad + i];
    if (d == b[i] || b[i] == 1) continue;
    if (d != 1) return std::nullopt;
    d = b[i];
  }
  return out;
}

int64_t product(std::span<const int64_t> dims, size_t begin, size_t end) {
  const auto n = checked_elements(dims.subspan(begin, end - begin));
  return static_cast<int64_t>(n.value_or(kMaxElements));
}

Result<Tensor> strided_copy(const Tensor& source, const Dims& dims, const Dims& strides, int64_t base) {
  DECANT_ASSIGN(Tensor out, Tensor::allocate(source.dtype(), dims));
  if (!is_bytewise(source.dtype())) {
    for_each_index<1>(dims, {strides}, [&](int64_t i, const std::array<int64_t, 1>& offset) {
      copy_elements(out, i, source, base + offset[0], 1);
    });
    return out;
  }
  const size_t size = size_of(source.dtype());
  const auto* from = static_cast<const std::byte*>(source.data());
  auto* to = static_cast<std::byte*>(out.mutable_data());
  for_each_index<1>(dims, {strides}, [&](int64_t i, const std::array<int64_t, 1>& offset) {
    std::memcpy(to + static_cast<size_t>(i) * size, from + static_cast<size_t>(base + offset[0]) * size,
                size);
  });
  return out;
}

void strided_write(Tensor& target, const Dims& strides, int64_t base, const Tensor& source) {
  if (!is_bytewise(source.dtype())) {
    for_each_index<1>(source.dims(), {strides}, [&](int64_t i, const std::array<int64_t, 1>& offset) {
      copy_elements(target, base + offset[0], source, i, 1);
    });
    return;
  }
  const size_t size = size_of(source.dtype());
  const auto* from = static_cast<const std::byte*>(source.data());
  auto* to = static_cast<std::byte*>(target.mutable_data());
  for_each_index<1>(source.dims(), {strides}, [&](int64_t i, const std::array<int64_t, 1>& offset) {
    std::memcpy(to + static_cast<size_t>(base + offset[0]) * size, from + static_cast<size_t>(i) * size,
                size);
  });
}

void copy_elements(Tensor& target, int64_t to, const Tensor& source, int64_t from, int64_t count) {
  if (count == 0) return;
  if (source.dtype() == DType::kString) {
    std::copy_n(source.data_as<std::string>() + from, count, target.mutable_data_as<std::string>() + to);
    return;
  }
  if (is_packed(source.dtype())) {
    const int bits = bits_of(source.dtype());
    const auto* read = source.data_as<uint8_t>();
    auto* written = target.mutable_data_as<uint8_t>();
    for (int64_t i = 0; i < count; ++i) packed_set(written, bits, to + i, packed_get(read, bits, from + i));
    return;
  }
  const size_t size = size_of(source.dtype());
  std::memcpy(static_cast<std::byte*>(target.mutable_data()) + static_cast<size_t>(to) * size,
              static_cast<const std::byte*>(source.data()) + static_cast<size_t>(from) * size,
              static_cast<size_t>(count) * size);
}

void fill_elements(Tensor& target, int64_t to, const Tensor* value, int64_t count) {
  if (value != nullptr) {
    for (int64_t i = 0; i < count; ++i) copy_elements(target, to + i, *value, 0, 1);
    return;
  }
  if (target.dtype() == DType::kString) {
    std::fill_n(target.mutable_data_as<std::string>() + to, count, std::string());
  } else if (is_packed(target.dtype())) {
    for (int64_t i = 0; i < count; ++i)
      packed_set(target.mutable_data_as<uint8_t>(), bits_of(target.dtype()), to + i, 0);
  } else if (count > 0) {
    const size_t size = size_of(target.dtype());
    std::memset(target.mutable_data_as<std::byte>() + static_cast<size_t>(to) * size, 0,
                static_cast<size_t>(count) * size);
  }
}

Result<Tensor> clone(const Tensor& source) {
  DECANT_ASSIGN(Tensor out, Tensor::allocate(source.dtype(), source.dims()));
  copy_elements(out, 0, source, 0, source.elements());
  return out;
}

}  // namespace decant::ir
