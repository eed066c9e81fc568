#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace decant::onnx {

/// What one parse shares: where the file begins (for byte offsets in messages), and how many more objects
/// (nodes, attributes, tensors, names) it may create. Two bytes of a file can become hundreds in memory; this
/// bounds it.
struct ParseContext {
  const std::byte* base = nullptr;
  int64_t objects_left = 4'000'000;
};

/// Walks the fields of one protobuf message in mapped memory. The first error sticks: every getter then
/// returns an empty value and next() returns false, so that callers check status() once, at the end.
///
///   WireReader r(context, bytes);
///   while (r.next()) {
///     switch (r.field()) {
///       case 1: x = r.int64(); break;
///       default: r.skip();
///     }
///   }
///   return r.status();
class WireReader {
 public:
  WireReader(ParseContext& context, std::span<const std::byte> bytes)
      : context_(&context), begin_(bytes.data()), at_(begin_), end_(begin_ + bytes.size()) {}

  /// Moves to the next field; false at the end of the message or after an error.
  bool next();
  uint32_t field() const { return field_; }
  bool is_length_delimited() const { return wire_ == 2; }

  uint64_t varint();
  int64_t int64() { return static_cast<int64_t>(varint()); }
  float float32();
  double float64();
  /// A view into the file: strings, bytes and messages.
  std::span<const std::byte> bytes();
  std::string_view string();
  /// A string that must be UTF-8 without NUL.
  std::string_view name();
  /// Appends a repeated field, packed or not.
  void varints(std::vector<int64_t>& out);
  void floats(std::vector<float>& out);
  void doubles(std::vector<double>& out);
  void skip();

  /// Counts one object against the budget.
  void count_object();
  void fail(std::string_view what);
  const Status& status() const { return status_; }

 private:
  uint64_t raw_varint();
  bool expect(uint32_t wire);
  bool take(void* out, size_t size);

  ParseContext* context_;
  const std::byte* begin_;
  const std::byte* at_;
  const std::byte* end_;
  uint32_t field_ = 0;
  uint32_t wire_ = 0;
  Status status_;
};

/// True for UTF-8 without NUL.
bool is_clean_text(std::string_view text);

}  // namespace decant::onnx
