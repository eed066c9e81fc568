#include "ir/ops/elements.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/half.h"
#include "base/small_float.h"

namespace decant::ir {
namespace {

struct Half {
  uint16_t bits;
};
struct BFloat {
  uint16_t bits;
};
struct Bool {
  uint8_t byte;
};
template <DType kType>
struct Small {
  uint8_t bits;
};
template <typename T>
constexpr bool kIsSmall = false;
template <DType kType>
constexpr bool kIsSmall<Small<kType>> = true;
template <DType kType>
constexpr DType small_type(Small<kType>) {
  return kType;
}

/// The float on the odd side of an inexact double, so that a second rounding to a shorter type is correct.
float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  if (!std::isfinite(value) || std::isinf(nearest) || static_cast<double>(nearest) == value) return nearest;
  if ((std::bit_cast<uint32_t>(nearest) & 1u) != 0) return nearest;
  const bool up = value > static_cast<double>(nearest);
  return std::nextafter(
      nearest, up ? std::numeric_limits<float>::infinity() : -std::numeric_limits<float>::infinity());
}

template <typename To>
To saturate(double value) {
  if (std::isnan(value)) return 0;
  // The upper bound 2^63 or 2^64 is exact as a double, the lower one too.
  constexpr double kUpper = std::is_same_v<To, int64_t> ? 0x1p63 : 0x1p64;
  constexpr double kLower = std::is_same_v<To, int64_t> ? -0x1p63 : 0.0;
  if (value >= kUpper) return std::numeric_limits<To>::max();
  if (value <= kLower) {
    // Negative values wrap through int64 for unsigned types, as a C cast of an in-range value does.
    if constexpr (std::is_same_v<To, uint64_t>) return static_cast<uint64_t>(saturate<int64_t>(value));
    return std::numeric_limits<To>::min();
  }
  return static_cast<To>(value);
}

template <typename C, typename T>
C decode(T stored) {
  if constexpr (std::is_same_v<T, Bool>) {
    return static_cast<C>(stored.byte != 0);
  } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat> || std::is_floating_point_v<T> ||
                       kIsSmall<T>) {
    double value;
    if constexpr (kIsSmall<T>) {
      value = small_to_float(small_type(stored), stored.bits);
    } else if constexpr (std::is_same_v<T, Half>) {
      value = f16_to_float(stored.bits);
    } else if constexpr (std::is_same_v<T, BFloat>) {
      value = bf16_to_float(stored.bits);
    } else {
      value = stored;
    }
    if constexpr (std::is_same_v<C, double>)
      return value;
    else
      return saturate<C>(value);
  } else {
    return static_cast<C>(stored);
  }
}

template <typename T, typename C>
T encode(C value) {
  if constexpr (std::is_same_v<T, Bool>) {
    return Bool{static_cast<uint8_t>(value != 0)};
  } else if constexpr (kIsSmall<T>) {
    return T{float_to_small(small_type(T{}), round_to_odd(static_cast<double>(value)))};
  } else if constexpr (std::is_same_v<T, Half>) {
    return Half{float_to_f16(round_to_odd(static_cast<double>(value)))};
  } else if constexpr (std::is_same_v<T, BFloat>) {
    return BFloat{float_to_bf16(round_to_odd(static_cast<double>(value)))};
  } else if constexpr (std::is_floating_point_v<T> || !std::is_same_v<C, double>) {
    return static_cast<T>(value);
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    return saturate<uint64_t>(value);
  } else {
    return static_cast<T>(saturate<int64_t>(value));
  }
}

template <typename F>
void with_storage(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kFloat32:
      return f(std::type_identity<float>{});
    case DType::kFloat64:
      return f(std::type_identity<double>{});
    case DType::kFloat16:
      return f(std::type_identity<Half>{});
    case DType::kBFloat16:
      return f(std::type_identity<BFloat>{});
    case DType::kInt8:
      return f(std::type_identity<int8_t>{});
    case DType::kInt16:
      return f(std::type_identity<int16_t>{});
    case DType::kInt32:
      return f(std::type_identity<int32_t>{});
    case DType::kInt64:
      return f(std::type_identity<int64_t>{});
    case DType::kUInt8:
      return f(std::type_identity<uint8_t>{});
    case DType::kUInt16:
      return f(std::type_identity<uint16_t>{});
    case DType::kUInt32:
      return f(std::type_identity<uint32_t>{});
    case DType::kUInt64:
      return f(std::type_identity<uint64_t>{});
    case DType::kBool:
      return f(std::type_identity<Bool>{});
    case DType::kFloat8E4M3FN:
      return f(std::type_identity<Small<DType::kFloat8E4M3FN>>{});
    case DType::kFloat8E4M3FNUZ:
      return f(std::type_identity<Small<DType::kFloat8E4M3FNUZ>>{});
    case DType::kFloat8E5M2:
      return f(std::type_identity<Small<DType::kFloat8E5M2>>{});
    case DType::kFloat8E5M2FNUZ:
      return f(std::type_identity<Small<DType::kFloat8E5M2FNUZ>>{});
    case DType::kFloat8E8M0:
      return f(std::type_identity<Small<DType::kFloat8E8M0>>{});
    default:  // packed types are read and written one by one; complex numbers and strings have no number
      return;
  }
}

}  // namespace

template <typename C>
void read_range(const Tensor& tensor, int64_t begin, std::span<C> out) {
  if (is_packed(tensor.dtype())) {
    for (size_t i = 0; i < out.size(); ++i) {
      const int64_t at = begin + static_cast<int64_t>(i);
      if constexpr (std::is_same_v<C, double>) {
        out[i] = tensor.double_at(at);
      } else {
        out[i] = static_cast<C>(tensor.int_at(at));
      }
    }
    return;
  }
  with_storage(tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto* bytes =
        static_cast<const std::byte*>(tensor.data()) + begin * static_cast<int64_t>(sizeof(T));
    for (size_t i = 0; i < out.size(); ++i) {
      T stored;
      std::memcpy(&stored, bytes + i * sizeof(T), sizeof(T));
      out[i] = decode<C>(stored);
    }
  });
}

template <typename C>
void write_range(Tensor& tensor, int64_t begin, std::span<const C> values) {
  if (is_packed(tensor.dtype())) {
    for (size_t i = 0; i < values.size(); ++i) {
      const uint8_t bits = tensor.dtype() == DType::kFloat4E2M1
                               ? float_to_small(tensor.dtype(), round_to_odd(static_cast<double>(values[i])))
                               : encode<uint8_t>(values[i]);
      packed_set(tensor.mutable_data_as<uint8_t>(), bits_of(tensor.dtype()), begin + static_cast<int64_t>(i),
                 bits);
    }
    return;
  }
  with_storage(tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto* bytes = static_cast<std::byte*>(tensor.mutable_data()) + begin * static_cast<int64_t>(sizeof(T));
    for (size_t i = 0; i < values.size(); ++i) {
      const T stored = encode<T>(values[i]);
      std::memcpy(bytes + i * sizeof(T), &stored, sizeof(T));
    }
  });
}

template void read_range(const Tensor&, int64_t, std::span<double>);
template void read_range(const Tensor&, int64_t, std::span<int64_t>);
template void read_range(const Tensor&, int64_t, std::span<uint64_t>);
template void write_range(Tensor&, int64_t, std::span<const double>);
template void write_range(Tensor&, int64_t, std::span<const int64_t>);
template void write_range(Tensor&, int64_t, std::span<const uint64_t>);

IntegerRange integer_range(DType dtype) {
  switch (dtype) {
    case DType::kInt8:
      return {INT8_MIN, INT8_MAX};
    case DType::kInt16:
      return {INT16_MIN, INT16_MAX};
    case DType::kInt32:
      return {INT32_MIN, INT32_MAX};
    case DType::kUInt8:
      return {0, UINT8_MAX};
    case DType::kUInt16:
      return {0, UINT16_MAX};
    case DType::kUInt32:
      return {0, UINT32_MAX};
    case DType::kUInt64:
      return {0, INT64_MAX};
    case DType::kBool:
      return {0, 1};
    case DType::kInt4:
      return {-8, 7};
    case DType::kUInt4:
      return {0, 15};
    case DType::kInt2:
      return {-2, 1};
    case DType::kUInt2:
      return {0, 3};
    default:
      return {INT64_MIN, INT64_MAX};
  }
}

namespace {
struct CodeRow {
  DType dtype;
  int64_t code;
};
constexpr CodeRow kCodes[] = {
    {DType::kFloat32, 1},       {DType::kUInt8, 2},
    {DType::kInt8, 3},          {DType::kUInt16, 4},
    {DType::kInt16, 5},         {DType::kInt32, 6},
    {DType::kInt64, 7},         {DType::kBool, 9},
    {DType::kFloat16, 10},      {DType::kFloat64, 11},
    {DType::kUInt32, 12},       {DType::kUInt64, 13},
    {DType::kBFloat16, 16},     {DType::kString, 8},
    {DType::kComplex64, 14},    {DType::kComplex128, 15},
    {DType::kFloat8E4M3FN, 17}, {DType::kFloat8E4M3FNUZ, 18},
    {DType::kFloat8E5M2, 19},   {DType::kFloat8E5M2FNUZ, 20},
    {DType::kUInt4, 21},        {DType::kInt4, 22},
    {DType::kFloat4E2M1, 23},   {DType::kFloat8E8M0, 24},
    {DType::kUInt2, 25},        {DType::kInt2, 26},
};
}  // namespace

DType dtype_from_onnx_code(int64_t code) {
  for (const auto& row : kCodes) {
    if (row.code == code) return row.dtype;
  }
  return DType::kUndefined;
}

int64_t onnx_code(DType dtype) {
  for (const auto& row : kCodes) {
    if (row.dtype == dtype) return row.code;
  }
  return 0;
}

}  // namespace decant::ir
