#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

namespace decant::gguf {

/// Reads little-endian values from bytes that may be anything; nullopt when the bytes do not suffice, and
/// then nothing is consumed.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  uint64_t position() const { return position_; }
  uint64_t left() const { return bytes_.size() - position_; }

  template <typename T>
  std::optional<T> read() {
    if (left() < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return value;
  }

  std::optional<std::span<const std::byte>> take(uint64_t count) {
    if (count > left()) return std::nullopt;
    const auto part = bytes_.subspan(position_, count);
    position_ += count;
    return part;
  }

  /// A string of the format: its length in 64 bits, then its bytes.
  std::optional<std::string_view> read_string() {
    const uint64_t start = position_;
    const auto length = read<uint64_t>();
    const auto bytes = length ? take(*length) : std::nullopt;
    if (!bytes) {
      position_ = start;
      return std::nullopt;
    }
    return std::string_view(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  }

 private:
  std::span<const std::byte> bytes_;
  uint64_t position_ = 0;
};

}  // namespace decant::gguf
