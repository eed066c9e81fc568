#include "decant/tensor.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstring>
#include <string>
#include <vector>

#include "bindings.h"

namespace decant::python {
namespace {

/// Codes of DLPack's DLDataTypeCode.
enum Code : uint8_t {
  kInt = 0,
  kUInt = 1,
  kFloat = 2,
  kBfloat = 4,
  kComplex = 5,
  kBool = 6,
  kFloat8E4M3FN = 10,
  kFloat8E4M3FNUZ = 11,
  kFloat8E5M2 = 12,
  kFloat8E5M2FNUZ = 13,
  kFloat8E8M0FNU = 14,
};

struct Mapping {
  DType dtype;
  uint8_t code, bits;
};

constexpr Mapping kMappings[] = {
    {DType::kFloat32, kFloat, 32},
    {DType::kFloat64, kFloat, 64},
    {DType::kFloat16, kFloat, 16},
    {DType::kBFloat16, kBfloat, 16},
    {DType::kInt8, kInt, 8},
    {DType::kInt16, kInt, 16},
    {DType::kInt32, kInt, 32},
    {DType::kInt64, kInt, 64},
    {DType::kUInt8, kUInt, 8},
    {DType::kUInt16, kUInt, 16},
    {DType::kUInt32, kUInt, 32},
    {DType::kUInt64, kUInt, 64},
    {DType::kBool, kBool, 8},
    {DType::kComplex64, kComplex, 64},
    {DType::kComplex128, kComplex, 128},
    {DType::kFloat8E4M3FN, kFloat8E4M3FN, 8},
    {DType::kFloat8E4M3FNUZ, kFloat8E4M3FNUZ, 8},
    {DType::kFloat8E5M2, kFloat8E5M2, 8},
    {DType::kFloat8E5M2FNUZ, kFloat8E5M2FNUZ, 8},
    {DType::kFloat8E8M0, kFloat8E8M0FNU, 8},
};

DType from_dlpack(nb::dlpack::dtype t) {
  for (const Mapping& m : kMappings) {
    if (m.code == t.code && m.bits == t.bits && t.lanes == 1) return m.dtype;
  }
  throw Failure(unsupported("an array of DLPack type code " + std::to_string(t.code) + " with " +
                            std::to_string(t.bits) + " bits"));
}

nb::dlpack::dtype to_dlpack(DType dtype) {
  for (const Mapping& m : kMappings) {
    if (m.dtype == dtype) return {m.code, m.bits, 1};
  }
  throw Failure(unsupported("tensors of " + std::string(to_string(dtype)) + " as arrays"));
}

/// Copies elements of `size` bytes from strided to dense memory; gives the end of what it wrote.
std::byte* gather(const std::byte* from, std::span<const int64_t> dims, const int64_t* strides, size_t size,
                  std::byte* to) {
  if (dims.empty()) {
    std::memcpy(to, from, size);
    return to + size;
  }
  for (int64_t i = 0; i < dims[0]; ++i) {
    const int64_t offset = i * strides[0] * static_cast<int64_t>(size);
    to = gather(from + offset, dims.subspan(1), strides + 1, size, to);
  }
  return to;
}

template <typename Array>
bool is_dense(const Array& array) {
  int64_t expected = 1;
  for (size_t i = array.ndim(); i-- > 0;) {
    if (array.shape(i) != 1 && array.stride(i) != expected) return false;
    expected *= static_cast<int64_t>(array.shape(i));
  }
  return true;
}

/// A tensor over the array's memory, or over a copy where the elements do not lie as decant wants them.
template <typename Array>
Tensor wrap(Array array, const std::optional<std::string>& dtype_name, bool writable) {
  if (array.device_type() != nb::device::cpu::value)
    throw Failure(invalid_argument("an array in the memory of another device; move it to the CPU first"));
  DType dtype = from_dlpack(array.dtype());
  if (dtype_name) {
    const auto named = dtype_from_string(*dtype_name);
    if (!named || size_of(*named) != size_of(dtype)) throw Failure(unsupported("arrays of " + *dtype_name));
    dtype = *named;
  }
  std::vector<int64_t> dims;
  for (size_t i = 0; i < array.ndim(); ++i) dims.push_back(static_cast<int64_t>(array.shape(i)));
  const void* data = array.data();
  const size_t size = size_of(dtype), alignment = std::min<size_t>(size, 8);
  const bool dense = array.size() == 0 || is_dense(array);
  if (dense && reinterpret_cast<uintptr_t>(data) % alignment == 0) {
    const std::shared_ptr<void> owner(new Array(std::move(array)), [](void* held) {
      const nb::gil_scoped_acquire lock;
      delete static_cast<Array*>(held);
    });
    if (!writable) return unwrap(Tensor::borrow(dtype, std::move(dims), data, owner));
    return unwrap(Tensor::borrow(dtype, std::move(dims), const_cast<void*>(data), owner));
  }
  if (writable) throw Failure(invalid_argument("the array is not contiguous: it cannot be written to"));
  Tensor copy = unwrap(Tensor::zeros(dtype, std::move(dims)));
  if (dense) {
    std::memcpy(copy.mutable_data(), data, copy.bytes());
  } else {
    gather(static_cast<const std::byte*>(data), copy.dims(), array.stride_ptr(), size,
           static_cast<std::byte*>(copy.mutable_data()));
  }
  return copy;
}

Tensor from_array(nb::handle object, const std::optional<std::string>& dtype, bool writable) {
  if (writable) {
    nb::ndarray<> array;
    if (nb::try_cast(object, array)) return wrap(std::move(array), dtype, true);
  } else {
    nb::ndarray<nb::ro> array;
    if (nb::try_cast(object, array)) return wrap(std::move(array), dtype, false);
  }
  const std::string type = nb::cast<std::string>(nb::handle(object).type().attr("__name__"));
  throw Failure(invalid_argument(writable ? "an object of type " + type + " is no array that can be written"
                                          : "an object of type " + type + " is no array that can be read"));
}

/// The tensor's memory as an array that keeps `self` alive.
template <typename Array>
nb::object export_as(nb::handle self, nb::dlpack::dtype dtype) {
  const auto& tensor = nb::cast<const Tensor&>(self);
  std::vector<size_t> shape(tensor.dims().begin(), tensor.dims().end());
  return nb::cast(Array(const_cast<void*>(tensor.data()), shape.size(), shape.data(), self, nullptr, dtype));
}

/// A numpy array; elements of a type that numpy lacks as unsigned integers.
nb::object raw_array(nb::handle self) {
  const auto& tensor = nb::cast<const Tensor&>(self);
  nb::dlpack::dtype dtype = to_dlpack(tensor.dtype());
  const bool known = dtype.code == kInt || dtype.code == kUInt || dtype.code == kFloat ||
                     dtype.code == kComplex || dtype.code == kBool;
  if (!known) dtype.code = kUInt;
  return tensor.writable() ? export_as<nb::ndarray<nb::numpy>>(self, dtype)
                           : export_as<nb::ndarray<nb::numpy, nb::ro>>(self, dtype);
}

nb::object dlpack(nb::handle self, const nb::kwargs& arguments) {
  const auto& tensor = nb::cast<const Tensor&>(self);
  const nb::dlpack::dtype dtype = to_dlpack(tensor.dtype());
  const nb::object array = tensor.writable() ? export_as<nb::ndarray<nb::array_api>>(self, dtype)
                                             : export_as<nb::ndarray<nb::array_api, nb::ro>>(self, dtype);
  return array.attr("__dlpack__")(**arguments);
}

nb::tuple shape(const Tensor& tensor) {
  nb::list dims;
  for (int64_t d : tensor.dims()) dims.append(d);
  return nb::tuple(dims);
}

}  // namespace

void bind_tensor(nb::module_& m) {
  nb::class_<Tensor>(m, "Tensor")
      .def_static("from_array", &from_array, nb::arg("array"), nb::arg("dtype") = nb::none(),
                  nb::arg("writable") = false)
      .def_prop_ro("dtype", [](const Tensor& t) { return std::string(to_string(t.dtype())); })
      .def_prop_ro("shape", &shape)
      .def_prop_ro("nbytes", &Tensor::bytes)
      .def_prop_ro("writable", &Tensor::writable)
      .def("raw_array", &raw_array)
      .def("numpy",
           [](nb::handle self) { return nb::module_::import_("decant._arrays").attr("to_numpy")(self); })
      .def(
          "__array__",
          [](nb::handle self, nb::handle dtype, nb::handle copy) {
            return nb::module_::import_("decant._arrays").attr("array")(self, dtype, copy);
          },
          nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none())
      .def("__dlpack__", &dlpack)
      .def("__dlpack_device__", [](const Tensor&) { return nb::make_tuple(nb::device::cpu::value, 0); })
      .def("__repr__", [](nb::handle self) {
        return nb::str("decant.Tensor(dtype={}, shape={})").format(self.attr("dtype"), self.attr("shape"));
      });
}

}  // namespace decant::python
