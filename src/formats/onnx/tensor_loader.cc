#include "formats/onnx/tensor_loader.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstring>

#include "base/checked.h"
#include "ir/ops/elements.h"

namespace decant::onnx {
namespace {

std::optional<uint64_t> parse_unsigned(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// The typed field that holds elements of a type (onnx.proto, TensorProto).
uint32_t typed_field(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kComplex64:
      return 4;
    case DType::kFloat64:
    case DType::kComplex128:
      return 10;
    case DType::kInt64:
      return 7;
    case DType::kUInt32:
    case DType::kUInt64:
      return 11;
    default:
      return 5;
  }
}

}  // namespace

std::string element_type_name(int64_t code) {
  static constexpr std::array kNames = {
      "undefined",      "float32",    "uint8",          "int8",       "uint16",    "int16",
      "int32",          "int64",      "string",         "bool",       "float16",   "float64",
      "uint32",         "uint64",     "complex64",      "complex128", "bfloat16",  "float8e4m3fn",
      "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "uint4",      "int4",      "float4e2m1",
      "float8e8m0",     "uint2",      "int2",           "float6e2m3", "float6e3m2"};
  if (code >= 0 && code < static_cast<int64_t>(kNames.size())) return kNames[static_cast<size_t>(code)];
  return fmt::format("type {}", code);
}

Result<ir::ConstantPtr> TensorLoader::load(const TensorMessage& message) {
  auto fail = [&](Status status) {
    return std::move(status).with_context(fmt::format("tensor '{}'", message.name));
  };
  const auto elements = checked_elements(message.dims);
  if (!elements) return fail(invalid_model("dims are negative or too large"));
  const DType dtype = ir::dtype_from_onnx_code(message.data_type);
  if (dtype == DType::kUndefined) {
    return fail(
        unsupported(fmt::format("elements of {} are not supported", element_type_name(message.data_type))));
  }
  if (message.has_segment) return fail(unsupported("segmented tensors are not supported"));
  if (dtype == DType::kString) {
    auto strings = load_strings(message, *elements);
    return strings.ok() ? std::move(strings) : fail(std::move(strings).status());
  }
  const uint64_t bytes = bytes_of(dtype, *elements).value_or(UINT64_MAX);
  const bool typed = message.ints_field != 0 || !message.floats.empty() || !message.doubles.empty() ||
                     !message.strings.empty();
  if (message.data_location == 1) {
    if (message.raw || typed) return fail(invalid_model("holds data and names external data"));
    auto constant = load_external(message, dtype, bytes);
    return constant.ok() ? std::move(constant) : fail(std::move(constant).status());
  }
  if (message.data_location != 0) return fail(invalid_model("unknown data location"));
  if (message.raw) {
    if (typed) return fail(invalid_model("holds raw and typed data"));
    if (message.raw->size() != bytes) {
      return fail(invalid_model(fmt::format("{} take {} bytes, raw data has {}",
                                            ir::describe(dtype, message.dims), bytes, message.raw->size())));
    }
    return ir::Constant::from_bytes(dtype, message.dims, *message.raw, owner_);
  }
  auto constant = load_typed(message, dtype, *elements);
  return constant.ok() ? std::move(constant) : fail(std::move(constant).status());
}

Result<ir::ConstantPtr> TensorLoader::load_external(const TensorMessage& message, DType dtype,
                                                    uint64_t bytes) {
  std::string location;
  uint64_t offset = 0;
  std::optional<uint64_t> length;
  for (const auto& [key, value] : message.external) {
    if (key == "location") location = value;
    if (key != "offset" && key != "length") continue;
    const auto number = parse_unsigned(value);
    if (!number) return invalid_model(fmt::format("external {} is no unsigned number", key));
    if (key == "offset")
      offset = *number;
    else
      length = *number;
  }
  if (folder_.empty()) return invalid_model("external data, but the model is not in a folder");
  auto it = files_.find(location);
  if (it == files_.end()) {
    DECANT_ASSIGN(auto file, MappedFile::open_beneath(folder_, location));
    it = files_.emplace(location, std::move(file)).first;
  }
  const auto file_bytes = it->second->bytes();
  if (length && *length != bytes) {
    return invalid_model(fmt::format("{} take {} bytes, external length is {}",
                                     ir::describe(dtype, message.dims), bytes, *length));
  }
  if (offset > file_bytes.size() || bytes > file_bytes.size() - offset) {
    return invalid_model(fmt::format("external bytes {} to {} + {} pass the end of '{}' ({} bytes)", offset,
                                     offset, bytes, location, file_bytes.size()));
  }
  return ir::Constant::from_bytes(dtype, message.dims, file_bytes.subspan(offset, bytes), it->second);
}

Result<ir::ConstantPtr> TensorLoader::load_strings(const TensorMessage& message, uint64_t elements) {
  if (message.raw || message.data_location != 0 || message.ints_field != 0 || !message.floats.empty() ||
      !message.doubles.empty()) {
    return invalid_model("strings must be in string_data");
  }
  if (message.strings.size() != elements) {
    return invalid_model(fmt::format("{} have {} elements, {} are there",
                                     ir::describe(DType::kString, message.dims), elements,
                                     message.strings.size()));
  }
  DECANT_ASSIGN(ir::Tensor tensor, ir::Tensor::allocate(DType::kString, message.dims));
  std::copy(message.strings.begin(), message.strings.end(), tensor.mutable_data_as<std::string>());
  return ir::Constant::from_tensor(tensor);
}

Result<ir::ConstantPtr> TensorLoader::load_typed(const TensorMessage& message, DType dtype,
                                                 uint64_t elements) {
  const uint32_t field = typed_field(dtype);
  const uint64_t held = field == 4    ? message.floats.size()
                        : field == 10 ? message.doubles.size()
                                      : message.ints.size();
  const bool other = (field != 4 && !message.floats.empty()) || (field != 10 && !message.doubles.empty()) ||
                     (message.ints_field != 0 && message.ints_field != field);
  if (other || !message.strings.empty()) {
    return invalid_model(
        fmt::format("{} with typed data of another type", ir::describe(dtype, message.dims)));
  }
  // Complex numbers are pairs; elements that share bytes come as those bytes.
  const bool is_complex = dtype == DType::kComplex64 || dtype == DType::kComplex128;
  const uint64_t entries = is_complex         ? 2 * elements
                           : is_packed(dtype) ? bytes_of(dtype, elements).value_or(UINT64_MAX)
                                              : elements;
  if (held != entries) {
    return invalid_model(fmt::format("{} need {} entries of typed data, {} are there",
                                     ir::describe(dtype, message.dims), entries, held));
  }
  DECANT_ASSIGN(ir::Tensor tensor, ir::Tensor::allocate(dtype, message.dims));
  auto* out = tensor.mutable_data_as<std::byte>();
  if (elements == 0) return ir::Constant::from_tensor(tensor);
  if (field == 4) {
    std::memcpy(out, message.floats.data(), tensor.bytes());
  } else if (field == 10) {
    std::memcpy(out, message.doubles.data(), tensor.bytes());
  } else {
    // Little-endian: the low bytes of each number are the element. float16 and bfloat16 are stored as their
    // bits.
    const size_t size = is_packed(dtype) ? 1 : size_of(dtype);
    for (size_t i = 0; i < message.ints.size(); ++i) {
      const int64_t value = message.ints[i];
      if (size < 4 && (value < -(int64_t{1} << (8 * size - 1)) || value >= int64_t{1} << (8 * size))) {
        return invalid_model(fmt::format("element {} does not fit {}", i, to_string(dtype)));
      }
      std::memcpy(out + i * size, &value, size);
    }
  }
  return ir::Constant::from_tensor(tensor);
}

}  // namespace decant::onnx
