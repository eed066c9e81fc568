#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "formats/gguf/cursor.h"
#include "formats/gguf/gguf_file.h"

namespace decant::gguf {

/// A value where it lies in the file.
struct Value {
  std::string_view key;
  ValueType type = ValueType::kUInt8;
  ValueType element = ValueType::kUInt8;  ///< element type of an array
  uint64_t count = 1;                     ///< elements of an array
  std::span<const std::byte> bytes;       ///< payload; strings with their lengths
};

/// The key-value section. Views point into the file.
class Metadata {
 public:
  /// Reads `count` pairs at the cursor. Keys are unique, lengths are inside the file, types are known.
  Status read(Cursor& cursor, uint64_t count);

  std::span<const Value> values() const { return values_; }
  const Value* find(std::string_view key) const;

 private:
  std::vector<Value> values_;
  std::unordered_map<std::string_view, size_t> index_;
};

}  // namespace decant::gguf
