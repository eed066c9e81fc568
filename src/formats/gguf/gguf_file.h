#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/encoding.h"
#include "base/mapped_file.h"
#include "base/status.h"

namespace decant::gguf {

/// Tags of metadata values, with the numbers of the format.
enum class ValueType : uint32_t {
  kUInt8 = 0,
  kInt8,
  kUInt16,
  kInt16,
  kUInt32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,
  kUInt64,
  kInt64,
  kFloat64,
};
std::string_view to_string(ValueType type);

/// A tensor of the file, not yet decoded.
struct Tensor {
  std::string name;
  std::vector<int64_t> dims;  ///< row-major (numpy) order, last axis contiguous; GGUF stores the reverse
  Encoding encoding = Encoding::kDense;
  DType dtype = DType::kFloat32;     ///< element type; kFloat32 for block encodings, which decode to it
  std::span<const std::byte> bytes;  ///< exactly encoded_bytes(encoding, dtype, elements), inside `file`
  std::shared_ptr<const MappedFile> file;  ///< keeps `bytes` alive
};

/// A GGUF model: version 2 or 3, little-endian, one file or a split set (name-00001-of-0000N.gguf; open the
/// first). Every count, length, offset and type was checked against the file when open() returned. Immutable,
/// thread-safe; views and spans live as long as the object (tensors: as their `file`).
///
/// A Llama-like GGUF differs from the checkpoint it was made from in more than names: rows of attn_q and
/// attn_k (weights and biases) are permuted from "first half, second half" to interleaved rotary pairs. For a
/// matrix of h * d rows, checkpoint row (head, half, i) is GGUF row (head, i, half), half in {0, 1}, i < d /
/// 2. Whoever captures the weights undoes that; this reader hands out what is stored.
class GgufFile {
 public:
  ~GgufFile();
  GgufFile(const GgufFile&) = delete;
  GgufFile& operator=(const GgufFile&) = delete;

  static Result<std::shared_ptr<const GgufFile>> open(const std::string& path);

  const std::string& path() const;
  uint32_t version() const;

  /// Metadata. Each accessor checks the stored type: kNotFound when the key is absent, kInvalidModel when its
  /// type is another one or the value does not fit. Integers of every width are accepted where they fit
  /// (get_f64 also takes them). With a fallback, an absent key gives the fallback; a wrong type is still an
  /// error.
  bool has(std::string_view key) const;
  std::vector<std::string_view> keys() const;  ///< in file order
  Result<ValueType> type_of(std::string_view key) const;
  Result<uint64_t> get_u64(std::string_view key) const;
  Result<uint64_t> get_u64(std::string_view key, uint64_t fallback) const;
  Result<int64_t> get_i64(std::string_view key) const;
  Result<double> get_f64(std::string_view key) const;
  Result<double> get_f64(std::string_view key, double fallback) const;
  Result<bool> get_bool(std::string_view key) const;
  Result<bool> get_bool(std::string_view key, bool fallback) const;
  /// Strings are views into the map; their bytes need not be valid UTF-8.
  Result<std::string_view> get_string(std::string_view key) const;
  Result<std::string_view> get_string(std::string_view key, std::string_view fallback) const;

  /// Arrays. array_size: kInvalidModel when the value is no array. Numbers are copied (they are unaligned in
  /// the file).
  Result<uint64_t> array_size(std::string_view key) const;
  Result<std::vector<std::string_view>> get_strings(std::string_view key) const;
  Result<std::vector<int64_t>> get_ints(std::string_view key) const;  ///< any integer or bool element type
  Result<std::vector<float>> get_floats(std::string_view key) const;  ///< float32 or float64 elements

  /// In file order; names are unique.
  std::span<const Tensor> tensors() const;
  /// Null when there is no such tensor.
  const Tensor* find(std::string_view name) const;

 private:
  struct Impl;
  explicit GgufFile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace decant::gguf
