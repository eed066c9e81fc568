#include "formats/safetensors/header.h"

#include <simdjson.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <string_view>
#include <unordered_set>

#include "base/checked.h"
#include "base/quote_name.h"

namespace decant::safetensors {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are handed out as they lie in the file");

constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the limit of the format's own library

struct Row {
  std::string_view name;
  DType dtype;
};
constexpr Row kDTypes[] = {
    {"F64", DType::kFloat64}, {"F32", DType::kFloat32}, {"F16", DType::kFloat16}, {"BF16", DType::kBFloat16},
    {"I64", DType::kInt64},   {"I32", DType::kInt32},   {"I16", DType::kInt16},   {"I8", DType::kInt8},
    {"U64", DType::kUInt64},  {"U32", DType::kUInt32},  {"U16", DType::kUInt16},  {"U8", DType::kUInt8},
    {"BOOL", DType::kBool},
};

std::optional<DType> dtype_of(std::string_view name) {
  for (const Row& row : kDTypes) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

struct Entry {
  Tensor tensor;
  uint64_t begin = 0;
  uint64_t end = 0;
};

Status read_shape(simdjson::dom::element value, Entry& entry, const std::string& shown) {
  simdjson::dom::array dims;
  if (value.get(dims)) return invalid_model(shown + ": shape is not a list");
  for (const simdjson::dom::element item : dims) {
    uint64_t dim = 0;
    if (item.get(dim) || dim > kMaxElements)
      return invalid_model(shown + ": shape holds something other than a size");
    entry.tensor.dims.push_back(static_cast<int64_t>(dim));
  }
  return ok_status();
}

Status read_offsets(simdjson::dom::element value, Entry& entry, const std::string& shown) {
  simdjson::dom::array offsets;
  uint64_t* const targets[] = {&entry.begin, &entry.end};
  size_t count = 0;
  if (value.get(offsets)) return invalid_model(shown + ": data_offsets is not a list");
  for (const simdjson::dom::element item : offsets) {
    if (count == 2 || item.get(*targets[count]))
      return invalid_model(shown + ": data_offsets is not two positions");
    ++count;
  }
  if (count != 2) return invalid_model(shown + ": data_offsets is not two positions");
  return ok_status();
}

Result<Entry> read_entry(std::string_view name, simdjson::dom::element value) {
  const std::string shown = "tensor " + quote_name(name);
  simdjson::dom::object fields;
  if (value.get(fields)) return invalid_model(shown + " is not described by an object");
  Entry entry;
  entry.tensor.name = std::string(name);
  bool has_dtype = false, has_shape = false, has_offsets = false;
  for (const auto& field : fields) {
    bool* seen = field.key == "dtype"          ? &has_dtype
                 : field.key == "shape"        ? &has_shape
                 : field.key == "data_offsets" ? &has_offsets
                                               : nullptr;
    if (seen == nullptr) continue;
    if (*seen) return invalid_model(shown + " has two entries " + quote_name(field.key));
    *seen = true;
    if (seen == &has_dtype) {
      std::string_view text;
      if (field.value.get(text)) return invalid_model(shown + ": dtype is not a string");
      const auto dtype = dtype_of(text);
      if (!dtype) {
        return unsupported(shown + " has dtype " + quote_name(text) +
                           "; read are F64, F32, F16, BF16, I64 to I8, U64 to U8 and BOOL");
      }
      entry.tensor.dtype = *dtype;
    } else if (seen == &has_shape) {
      DECANT_RETURN_IF_ERROR(read_shape(field.value, entry, shown));
    } else {
      DECANT_RETURN_IF_ERROR(read_offsets(field.value, entry, shown));
    }
  }
  if (!has_dtype || !has_shape || !has_offsets) {
    return invalid_model(shown + " lacks dtype, shape or data_offsets");
  }
  const auto elements = checked_elements(entry.tensor.dims);
  if (!elements) return invalid_model(shown + " has more than 2^48 elements");
  const uint64_t bytes = *elements * size_of(entry.tensor.dtype);
  if (entry.end < entry.begin || entry.end - entry.begin != bytes) {
    return invalid_model(shown + ": data_offsets [" + std::to_string(entry.begin) + ", " +
                         std::to_string(entry.end) + "] do not span the " + std::to_string(bytes) +
                         " bytes of its shape and dtype");
  }
  return entry;
}

Status read_metadata(simdjson::dom::element value, MetadataEntries& metadata) {
  simdjson::dom::object fields;
  if (value.get(fields)) return invalid_model("__metadata__ is not an object");
  for (const auto& field : fields) {
    std::string_view text;
    if (field.value.get(text))
      return invalid_model("__metadata__ entry " + quote_name(field.key) + " is not a string");
    metadata.emplace_back(std::string(field.key), std::string(text));
  }
  return ok_status();
}

/// The tensors must cover the data from its first to its last byte.
Status check_cover(const std::vector<Entry>& entries, uint64_t data_size) {
  uint64_t position = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != position) {
      return invalid_model("tensor " + quote_name(entry.tensor.name) + " begins at byte " +
                           std::to_string(entry.begin) + " of the data, " + std::to_string(position) +
                           " was expected: tensors may neither overlap nor leave holes");
    }
    position = entry.end;
  }
  if (position > data_size) {
    return invalid_model("the tensors need " + std::to_string(position) + " bytes of data, the file has " +
                         std::to_string(data_size) + "; it is truncated");
  }
  if (position < data_size) {
    return invalid_model("the file has " + std::to_string(data_size - position) +
                         " bytes after its last tensor");
  }
  return ok_status();
}

}  // namespace

std::string_view format_name(DType dtype) {
  for (const Row& row : kDTypes) {
    if (row.dtype == dtype) return row.name;
  }
  return {};
}

Status read_header(const std::shared_ptr<const MappedFile>& file, std::vector<Tensor>& tensors,
                   MetadataEntries& metadata) {
  const auto bytes = file->bytes();
  uint64_t length = 0;
  if (bytes.size() < sizeof(length))
    return invalid_model("is shorter than the 8 bytes of a safetensors header");
  std::memcpy(&length, bytes.data(), sizeof(length));
  if (length > kMaxHeaderBytes || length > bytes.size() - sizeof(length)) {
    return invalid_model("announces a header of " + std::to_string(length) + " bytes; the file has " +
                         std::to_string(bytes.size()) + " and the format allows 100000000");
  }
  const auto* text = reinterpret_cast<const char*>(bytes.data()) + sizeof(length);
  if (length == 0 || text[0] != '{') return invalid_model("its header does not begin with '{'");
  const simdjson::padded_string padded(text, length);
  if (padded.data() == nullptr)
    return resource_error("no memory for a header of " + std::to_string(length) + " bytes");
  simdjson::dom::parser parser;
  simdjson::dom::object root;
  if (const auto code = parser.parse(padded).get(root)) {
    return invalid_model(std::string("its header is not JSON of an object: ") +
                         simdjson::error_message(code));
  }

  std::vector<Entry> entries;
  std::unordered_set<std::string_view> names;
  bool has_metadata = false;
  for (const auto& field : root) {
    if (!names.insert(field.key).second)
      return invalid_model("its header has two entries " + quote_name(field.key));
    if (field.key == "__metadata__") {
      if (has_metadata) return invalid_model("its header has two entries '__metadata__'");
      has_metadata = true;
      DECANT_RETURN_IF_ERROR(read_metadata(field.value, metadata));
      continue;
    }
    DECANT_ASSIGN(Entry entry, read_entry(field.key, field.value));
    entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  const auto data = bytes.subspan(sizeof(length) + length);
  DECANT_RETURN_IF_ERROR(check_cover(entries, data.size()));
  for (Entry& entry : entries) {
    entry.tensor.bytes = data.subspan(entry.begin, entry.end - entry.begin);
    entry.tensor.file = file;
    tensors.push_back(std::move(entry.tensor));
  }
  return ok_status();
}

}  // namespace decant::safetensors
