#include "formats/gguf/gguf_file.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <iterator>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/checked.h"
#include "base/quote_name.h"
#include "formats/gguf/cursor.h"
#include "formats/gguf/metadata.h"
#include "formats/gguf/tensor_types.h"

namespace decant::gguf {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF values are read as they lie in the file");

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr uint32_t kSwappedMagic = 0x47475546;
constexpr uint32_t kMaxDims = 4;  // as ggml
constexpr uint64_t kMinTensorBytes = 8 + 1 + 4 + 4 + 8;
constexpr uint64_t kMaxAlignment = uint64_t{1} << 20;
constexpr uint64_t kMaxSplits = 1024;

/// One physical file.
struct Part {
  std::shared_ptr<const MappedFile> file;
  uint32_t version = 0;
  Metadata metadata;
  std::vector<Tensor> tensors;
};

struct Placed {
  uint64_t offset;
  uint64_t bytes;
  size_t tensor;
};

Result<Placed> read_tensor(Cursor& cursor, Tensor& tensor, uint64_t index) {
  const Status cut = invalid_model("the file ends inside the description of tensor " + std::to_string(index) +
                                   "; it is truncated or its sizes are wrong");
  const auto name = cursor.read_string();
  if (!name) return cut;
  tensor.name = std::string(*name);
  const std::string shown = "tensor " + quote_name(*name);
  if (name->empty() || name->size() > 1024)
    return invalid_model(shown + ": its name has " + std::to_string(name->size()) + " bytes");
  const auto rank = cursor.read<uint32_t>();
  if (!rank) return cut;
  if (*rank > kMaxDims) {
    return invalid_model(shown + " has " + std::to_string(*rank) + " dimensions, at most " +
                         std::to_string(kMaxDims) + " exist");
  }
  for (uint32_t i = 0; i < *rank; ++i) {
    const auto dim = cursor.read<uint64_t>();
    if (!dim) return cut;
    if (*dim == 0 || *dim > kMaxElements) {
      return invalid_model(shown + ": dimension " + std::to_string(i) + " is " + std::to_string(*dim));
    }
    tensor.dims.push_back(static_cast<int64_t>(*dim));
  }
  std::reverse(tensor.dims.begin(), tensor.dims.end());
  const auto id = cursor.read<uint32_t>();
  const auto offset = cursor.read<uint64_t>();
  if (!id || !offset) return cut;
  const auto type = tensor_type(*id);
  if (!type) {
    return unsupported(
        shown + " is stored as " + tensor_type_name(*id) +
        "; decoded are F32, F16, BF16, F64, I8 to I64, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0 and Q2_K to Q6_K");
  }
  tensor.encoding = type->encoding;
  tensor.dtype = type->dtype;
  const auto elements = checked_elements(tensor.dims);
  if (!elements) return invalid_model(shown + " has more than 2^48 elements");
  const uint64_t row = tensor.dims.empty() ? 1 : static_cast<uint64_t>(tensor.dims.back());
  if (row % block_elements(type->encoding) != 0) {
    return invalid_model(shown + ": its rows of " + std::to_string(row) +
                         " elements are not whole blocks of " +
                         std::string(decant::to_string(type->encoding)) + " (" +
                         std::to_string(block_elements(type->encoding)) + ")");
  }
  return Placed{*offset, encoded_bytes(type->encoding, type->dtype, *elements), 0};
}

Result<uint64_t> alignment_of(const Metadata& metadata) {
  const Value* value = metadata.find("general.alignment");
  if (value == nullptr) return uint64_t{32};
  if (value->type != ValueType::kUInt32) {
    return invalid_model("general.alignment is of type " + std::string(to_string(value->type)) +
                         ", not uint32");
  }
  const uint32_t alignment = *Cursor(value->bytes).read<uint32_t>();
  if (!std::has_single_bit(alignment) || alignment > kMaxAlignment) {
    return invalid_model("general.alignment is " + std::to_string(alignment) +
                         ", not a power of two up to 2^20");
  }
  return uint64_t{alignment};
}

/// Places the tensors in the data section: aligned, inside the file, without overlap.
Status place_tensors(Part& part, std::vector<Placed> places, uint64_t header_end, uint64_t alignment) {
  const auto bytes = part.file->bytes();
  const uint64_t data_start = (header_end + alignment - 1) / alignment * alignment;
  const uint64_t data_size = data_start < bytes.size() ? bytes.size() - data_start : 0;
  for (const Placed& place : places) {
    Tensor& tensor = part.tensors[place.tensor];
    const std::string shown = "tensor " + quote_name(tensor.name);
    if (place.offset % alignment != 0) {
      return invalid_model(shown + ": its offset " + std::to_string(place.offset) + " is not a multiple of " +
                           std::to_string(alignment));
    }
    if (place.offset > data_size || place.bytes > data_size - place.offset) {
      return invalid_model(shown + ": its " + std::to_string(place.bytes) + " bytes at offset " +
                           std::to_string(place.offset) + " pass the end of the data section (" +
                           std::to_string(data_size) +
                           " bytes); the file is truncated or its sizes are wrong");
    }
    tensor.bytes = bytes.subspan(data_start + place.offset, place.bytes);
    tensor.file = part.file;
  }
  std::sort(places.begin(), places.end(),
            [](const Placed& a, const Placed& b) { return a.offset < b.offset; });
  for (size_t i = 1; i < places.size(); ++i) {
    if (places[i].offset - places[i - 1].offset < places[i - 1].bytes) {
      return invalid_model("tensors " + quote_name(part.tensors[places[i - 1].tensor].name) + " and " +
                           quote_name(part.tensors[places[i].tensor].name) + " overlap");
    }
  }
  return ok_status();
}

Status check_header(Cursor& cursor, uint32_t& version) {
  const auto magic = cursor.read<uint32_t>();
  if (!magic || *magic != kMagic) {
    if (magic && *magic == kSwappedMagic) {
      return unsupported("is a GGUF file of the other byte order (big-endian); convert it to little-endian");
    }
    return invalid_model("is not a GGUF file (its first four bytes are not \"GGUF\")");
  }
  const auto number = cursor.read<uint32_t>();
  if (!number) return invalid_model("the file ends inside its header");
  version = *number;
  if (version != 0 && (version & 0xffff) == 0) {
    return unsupported("is a GGUF file of the other byte order (big-endian); convert it to little-endian");
  }
  if (version != 2 && version != 3) {
    return unsupported("is GGUF version " + std::to_string(version) + "; versions 2 and 3 are read");
  }
  return ok_status();
}

Status read_part_bytes(Part& part) {
  Cursor cursor(part.file->bytes());
  DECANT_RETURN_IF_ERROR(check_header(cursor, part.version));
  const auto tensor_count = cursor.read<uint64_t>();
  const auto pair_count = cursor.read<uint64_t>();
  if (!tensor_count || !pair_count) return invalid_model("the file ends inside its header");
  DECANT_RETURN_IF_ERROR(part.metadata.read(cursor, *pair_count));
  DECANT_ASSIGN(const uint64_t alignment, alignment_of(part.metadata));
  if (*tensor_count > cursor.left() / kMinTensorBytes) {
    return invalid_model("the header announces " + std::to_string(*tensor_count) + " tensors, more than " +
                         std::to_string(cursor.left()) + " bytes can describe");
  }
  std::vector<Placed> places;
  for (uint64_t i = 0; i < *tensor_count; ++i) {
    Tensor tensor;
    DECANT_ASSIGN(Placed place, read_tensor(cursor, tensor, i));
    place.tensor = part.tensors.size();
    places.push_back(place);
    part.tensors.push_back(std::move(tensor));
  }
  return place_tensors(part, std::move(places), cursor.position(), alignment);
}

Result<Part> read_part(std::shared_ptr<const MappedFile> file) {
  Part part;
  part.file = std::move(file);
  if (Status status = read_part_bytes(part); !status.ok())
    return std::move(status).with_context(part.file->path());
  return part;
}

Result<uint64_t> split_value(const Part& part, std::string_view key) {
  const Value* value = part.metadata.find(key);
  if (value == nullptr) return uint64_t{0};
  Cursor cursor(value->bytes);
  if (value->type == ValueType::kUInt16) return uint64_t{*cursor.read<uint16_t>()};
  if (value->type == ValueType::kUInt32) return uint64_t{*cursor.read<uint32_t>()};
  if (value->type == ValueType::kInt32) {
    const int32_t number = *cursor.read<int32_t>();
    if (number >= 0) return static_cast<uint64_t>(number);
  }
  return invalid_model(part.file->path() + ": metadata key " + quote_name(key) + " is no count");
}

std::string split_suffix(uint64_t index, uint64_t count) {
  char text[64];
  std::snprintf(text, sizeof(text), "-%05u-of-%05u.gguf", static_cast<unsigned>(index + 1),
                static_cast<unsigned>(count));
  return text;
}

/// Reads the other files of a split set beside the first and adds their tensors to `first`.
Status read_splits(Part& first, const std::string& path) {
  DECANT_ASSIGN(const uint64_t count, split_value(first, "split.count"));
  if (count <= 1) return ok_status();
  DECANT_ASSIGN(const uint64_t number, split_value(first, "split.no"));
  if (count > kMaxSplits) return invalid_model(path + ": split.count is " + std::to_string(count));
  const std::string suffix = split_suffix(0, count);
  if (number != 0 || !path.ends_with(suffix)) {
    return invalid_argument(path + " is part " + std::to_string(number + 1) + " of " + std::to_string(count) +
                            " of a split model; open the first part, whose name ends in \"" + suffix + "\"");
  }
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  const std::string stem = path.substr(folder.size(), path.size() - folder.size() - suffix.size());
  for (uint64_t i = 1; i < count; ++i) {
    DECANT_ASSIGN(auto file, MappedFile::open_beneath(folder, stem + split_suffix(i, count)));
    DECANT_ASSIGN(Part part, read_part(std::move(file)));
    DECANT_ASSIGN(const uint64_t part_number, split_value(part, "split.no"));
    DECANT_ASSIGN(const uint64_t part_count, split_value(part, "split.count"));
    if (part_number != i || part_count != count) {
      return invalid_model(part.file->path() + " says that it is part " + std::to_string(part_number + 1) +
                           " of " + std::to_string(part_count));
    }
    std::move(part.tensors.begin(), part.tensors.end(), std::back_inserter(first.tensors));
  }
  if (first.metadata.find("split.tensors.count") != nullptr) {
    DECANT_ASSIGN(const uint64_t total, split_value(first, "split.tensors.count"));
    if (total != first.tensors.size()) {
      return invalid_model(path + ": the parts hold " + std::to_string(first.tensors.size()) +
                           " tensors, split.tensors.count says " + std::to_string(total));
    }
  }
  return ok_status();
}

}  // namespace

struct GgufFile::Impl {
  Part part;
  std::unordered_map<std::string_view, size_t> index;

  Status error(std::string_view key, const std::string& text) const {
    return invalid_model(part.file->path() + ": metadata key " + quote_name(key) + " " + text);
  }

  Result<const Value*> get(std::string_view key) const {
    if (const Value* value = part.metadata.find(key)) return value;
    return not_found(part.file->path() + ": there is no metadata key " + quote_name(key));
  }

  Status wrong_type(const Value& value, std::string_view wanted) const {
    std::string found(to_string(value.type));
    if (value.type == ValueType::kArray) found += " of " + std::string(to_string(value.element));
    return error(value.key, "is of type " + found + ", " + std::string(wanted) + " was expected");
  }

  Result<const Value*> get_array(std::string_view key, std::string_view wanted) const {
    DECANT_ASSIGN(const Value* value, get(key));
    if (value->type != ValueType::kArray) return wrong_type(*value, wanted);
    return value;
  }
};

namespace {

/// An integer of any width: its value, and whether it is a uint64 above INT64_MAX.
struct Integer {
  int64_t value;
  bool above_int64;
};

std::optional<Integer> read_integer(Cursor& cursor, ValueType type) {
  switch (type) {
    case ValueType::kUInt8:
      return Integer{*cursor.read<uint8_t>(), false};
    case ValueType::kInt8:
      return Integer{*cursor.read<int8_t>(), false};
    case ValueType::kUInt16:
      return Integer{*cursor.read<uint16_t>(), false};
    case ValueType::kInt16:
      return Integer{*cursor.read<int16_t>(), false};
    case ValueType::kUInt32:
      return Integer{*cursor.read<uint32_t>(), false};
    case ValueType::kInt32:
      return Integer{*cursor.read<int32_t>(), false};
    case ValueType::kInt64:
      return Integer{*cursor.read<int64_t>(), false};
    case ValueType::kUInt64: {
      const uint64_t value = *cursor.read<uint64_t>();
      return Integer{static_cast<int64_t>(value), value > uint64_t{std::numeric_limits<int64_t>::max()}};
    }
    default:
      return std::nullopt;
  }
}

}  // namespace

std::string_view to_string(ValueType type) {
  switch (type) {
    case ValueType::kUInt8:
      return "uint8";
    case ValueType::kInt8:
      return "int8";
    case ValueType::kUInt16:
      return "uint16";
    case ValueType::kInt16:
      return "int16";
    case ValueType::kUInt32:
      return "uint32";
    case ValueType::kInt32:
      return "int32";
    case ValueType::kFloat32:
      return "float32";
    case ValueType::kBool:
      return "bool";
    case ValueType::kString:
      return "string";
    case ValueType::kArray:
      return "array";
    case ValueType::kUInt64:
      return "uint64";
    case ValueType::kInt64:
      return "int64";
    case ValueType::kFloat64:
      return "float64";
  }
  return "unknown";
}

GgufFile::GgufFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
GgufFile::~GgufFile() = default;

Result<std::shared_ptr<const GgufFile>> GgufFile::open(const std::string& path) {
  DECANT_ASSIGN(auto file, MappedFile::open(path));
  auto impl = std::make_unique<Impl>();
  DECANT_ASSIGN(impl->part, read_part(std::move(file)));
  DECANT_RETURN_IF_ERROR(read_splits(impl->part, path));
  for (size_t i = 0; i < impl->part.tensors.size(); ++i) {
    const std::string& name = impl->part.tensors[i].name;
    if (!impl->index.emplace(name, i).second)
      return invalid_model(path + ": tensor " + quote_name(name) + " appears twice");
  }
  return std::shared_ptr<const GgufFile>(new GgufFile(std::move(impl)));
}

const std::string& GgufFile::path() const { return impl_->part.file->path(); }
uint32_t GgufFile::version() const { return impl_->part.version; }
bool GgufFile::has(std::string_view key) const { return impl_->part.metadata.find(key) != nullptr; }

std::vector<std::string_view> GgufFile::keys() const {
  std::vector<std::string_view> keys;
  for (const Value& value : impl_->part.metadata.values()) keys.push_back(value.key);
  return keys;
}

Result<ValueType> GgufFile::type_of(std::string_view key) const {
  DECANT_ASSIGN(const Value* value, impl_->get(key));
  return value->type;
}

Result<uint64_t> GgufFile::get_u64(std::string_view key) const {
  DECANT_ASSIGN(const Value* value, impl_->get(key));
  Cursor cursor(value->bytes);
  const auto integer = read_integer(cursor, value->type);
  if (!integer) return impl_->wrong_type(*value, "an integer");
  if (integer->value < 0 && !integer->above_int64) {
    return impl_->error(key, "is negative: " + std::to_string(integer->value));
  }
  return static_cast<uint64_t>(integer->value);
}

Result<int64_t> GgufFile::get_i64(std::string_view key) const {
  DECANT_ASSIGN(const Value* value, impl_->get(key));
  Cursor cursor(value->bytes);
  const auto integer = read_integer(cursor, value->type);
  if (!integer) return impl_->wrong_type(*value, "an integer");
  if (integer->above_int64) return impl_->error(key, "does not fit 63 bits");
  return integer->value;
}

Result<double> GgufFile::get_f64(std::string_view key) const {
  DECANT_ASSIGN(const Value* value, impl_->get(key));
  Cursor cursor(value->bytes);
  if (value->type == ValueType::kFloat32) return static_cast<double>(*cursor.read<float>());
  if (value->type == ValueType::kFloat64) return *cursor.read<double>();
  const auto integer = read_integer(cursor, value->type);
  if (!integer) return impl_->wrong_type(*value, "a number");
  return integer->above_int64 ? static_cast<double>(static_cast<uint64_t>(integer->value))
                              : static_cast<double>(integer->value);
}

Result<bool> GgufFile::get_bool(std::string_view key) const {
  DECANT_ASSIGN(const Value* value, impl_->get(key));
  if (value->type != ValueType::kBool) return impl_->wrong_type(*value, "bool");
  const auto byte = std::to_integer<unsigned>(value->bytes[0]);
  if (byte > 1) return impl_->error(key, "is a bool of value " + std::to_string(byte));
  return byte == 1;
}

Result<std::string_view> GgufFile::get_string(std::string_view key) const {
  DECANT_ASSIGN(const Value* value, impl_->get(key));
  if (value->type != ValueType::kString) return impl_->wrong_type(*value, "string");
  return *Cursor(value->bytes).read_string();
}

Result<uint64_t> GgufFile::get_u64(std::string_view key, uint64_t fallback) const {
  return has(key) ? get_u64(key) : fallback;
}
Result<double> GgufFile::get_f64(std::string_view key, double fallback) const {
  return has(key) ? get_f64(key) : fallback;
}
Result<bool> GgufFile::get_bool(std::string_view key, bool fallback) const {
  return has(key) ? get_bool(key) : fallback;
}
Result<std::string_view> GgufFile::get_string(std::string_view key, std::string_view fallback) const {
  return has(key) ? get_string(key) : fallback;
}

Result<uint64_t> GgufFile::array_size(std::string_view key) const {
  DECANT_ASSIGN(const Value* value, impl_->get_array(key, "an array"));
  return value->count;
}

Result<std::vector<std::string_view>> GgufFile::get_strings(std::string_view key) const {
  DECANT_ASSIGN(const Value* value, impl_->get_array(key, "an array of strings"));
  if (value->element != ValueType::kString) return impl_->wrong_type(*value, "an array of strings");
  std::vector<std::string_view> strings;
  strings.reserve(value->count);
  Cursor cursor(value->bytes);
  for (uint64_t i = 0; i < value->count; ++i) strings.push_back(*cursor.read_string());
  return strings;
}

Result<std::vector<int64_t>> GgufFile::get_ints(std::string_view key) const {
  DECANT_ASSIGN(const Value* value, impl_->get_array(key, "an array of integers"));
  const bool is_bool = value->element == ValueType::kBool;
  const ValueType type = is_bool ? ValueType::kUInt8 : value->element;
  std::vector<int64_t> numbers;
  Cursor cursor(value->bytes);
  for (uint64_t i = 0; i < value->count; ++i) {
    const auto integer = read_integer(cursor, type);
    if (!integer) return impl_->wrong_type(*value, "an array of integers");
    if (integer->above_int64) return impl_->error(key, "has an element that does not fit 63 bits");
    if (is_bool && integer->value > 1) return impl_->error(key, "has a bool that is neither 0 nor 1");
    numbers.push_back(integer->value);
  }
  if (value->count == 0 &&
      (type == ValueType::kString || type == ValueType::kFloat32 || type == ValueType::kFloat64)) {
    return impl_->wrong_type(*value, "an array of integers");
  }
  return numbers;
}

Result<std::vector<float>> GgufFile::get_floats(std::string_view key) const {
  DECANT_ASSIGN(const Value* value, impl_->get_array(key, "an array of floats"));
  if (value->element != ValueType::kFloat32 && value->element != ValueType::kFloat64) {
    return impl_->wrong_type(*value, "an array of floats");
  }
  std::vector<float> numbers;
  numbers.reserve(value->count);
  Cursor cursor(value->bytes);
  for (uint64_t i = 0; i < value->count; ++i) {
    numbers.push_back(value->element == ValueType::kFloat32 ? *cursor.read<float>()
                                                            : static_cast<float>(*cursor.read<double>()));
  }
  return numbers;
}

std::span<const Tensor> GgufFile::tensors() const { return impl_->part.tensors; }

const Tensor* GgufFile::find(std::string_view name) const {
  const auto found = impl_->index.find(name);
  return found == impl_->index.end() ? nullptr : &impl_->part.tensors[found->second];
}

}  // namespace decant::gguf
