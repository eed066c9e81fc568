#include "formats/gguf/metadata.h"

#include <optional>
#include <string>

#include "base/quote_name.h"

namespace decant::gguf {
namespace {

constexpr uint64_t kMaxKeyBytes = 65535;  // the limit of the format
constexpr uint64_t kMinPairBytes = sizeof(uint64_t) + 1 + sizeof(uint32_t) + 1;

/// Bytes of a value of fixed size; 0 for strings and arrays.
uint64_t fixed_size(ValueType type) {
  switch (type) {
    case ValueType::kUInt8:
    case ValueType::kInt8:
    case ValueType::kBool:
      return 1;
    case ValueType::kUInt16:
    case ValueType::kInt16:
      return 2;
    case ValueType::kUInt32:
    case ValueType::kInt32:
    case ValueType::kFloat32:
      return 4;
    case ValueType::kUInt64:
    case ValueType::kInt64:
    case ValueType::kFloat64:
      return 8;
    default:
      return 0;
  }
}

Status cut_off(std::string_view what) {
  return invalid_model("the file ends inside " + std::string(what) +
                       "; it is truncated or its sizes are wrong");
}

Result<ValueType> read_type(Cursor& cursor, const std::string& key) {
  const auto type = cursor.read<uint32_t>();
  if (!type) return cut_off("the metadata key " + key);
  if (*type > static_cast<uint32_t>(ValueType::kFloat64)) {
    return invalid_model("metadata key " + key + " has the unknown value type " + std::to_string(*type));
  }
  return static_cast<ValueType>(*type);
}

/// Consumes `count` elements of `type` and returns their bytes.
Result<std::span<const std::byte>> read_payload(Cursor& cursor, ValueType type, uint64_t count,
                                                const std::string& key) {
  Cursor start = cursor;
  const uint64_t size = fixed_size(type);
  if (size > 0) {
    if (count > cursor.left() / size) return cut_off("the metadata value of " + key);
    return *cursor.take(count * size);
  }
  if (count > cursor.left() / sizeof(uint64_t)) return cut_off("the metadata value of " + key);
  for (uint64_t i = 0; i < count; ++i) {
    if (!cursor.read_string()) return cut_off("the metadata value of " + key);
  }
  return *start.take(cursor.position() - start.position());
}

}  // namespace

Status Metadata::read(Cursor& cursor, uint64_t count) {
  if (count > cursor.left() / kMinPairBytes) {
    return invalid_model("the header announces " + std::to_string(count) + " metadata pairs, more than " +
                         std::to_string(cursor.left()) + " bytes can hold");
  }
  for (uint64_t i = 0; i < count; ++i) {
    Value value;
    const auto key = cursor.read_string();
    if (!key) return cut_off("metadata pair " + std::to_string(i));
    if (key->empty() || key->size() > kMaxKeyBytes) {
      return invalid_model("metadata pair " + std::to_string(i) + " has a key of " +
                           std::to_string(key->size()) + " bytes");
    }
    value.key = *key;
    const std::string shown = quote_name(*key);
    DECANT_ASSIGN(value.type, read_type(cursor, shown));
    ValueType payload = value.type;
    if (value.type == ValueType::kArray) {
      DECANT_ASSIGN(value.element, read_type(cursor, shown));
      if (value.element == ValueType::kArray) {
        return unsupported("metadata key " + shown + " is an array of arrays, which no known model uses");
      }
      const auto elements = cursor.read<uint64_t>();
      if (!elements) return cut_off("the metadata key " + shown);
      value.count = *elements;
      payload = value.element;
    }
    DECANT_ASSIGN(value.bytes, read_payload(cursor, payload, value.count, shown));
    if (!index_.emplace(value.key, values_.size()).second) {
      return invalid_model("metadata key " + shown + " appears twice");
    }
    values_.push_back(value);
  }
  return ok_status();
}

const Value* Metadata::find(std::string_view key) const {
  const auto found = index_.find(key);
  return found == index_.end() ? nullptr : &values_[found->second];
}

}  // namespace decant::gguf
