#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "base/mapped_file.h"
#include "base/status.h"

namespace decant::safetensors {

struct Tensor {
  std::string name;
  DType dtype = DType::kUndefined;
  std::vector<int64_t> dims;         ///< row-major; empty for a scalar
  std::span<const std::byte> bytes;  ///< exactly elements * size_of(dtype), little-endian, any alignment
  std::shared_ptr<const MappedFile> file;  ///< keeps `bytes` alive
};

/// One safetensors file, or the files of a sharded checkpoint seen as one. Checked when open() returns:
/// header at most 100 MB, known dtypes, sizes equal to dtype * shape, tensors covering the data without hole
/// or overlap, names unique over all shards. Immutable and thread-safe; tensors live as long as their `file`.
class SafetensorsFile {
 public:
  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  /// `path`: a .safetensors file, an index (*.index.json), or a folder with model.safetensors or else
  /// model.safetensors.index.json. Every shard an index names must exist inside the index's folder (hub links
  /// are followed, see MappedFile) and hold the tensors that the index says; nothing is returned otherwise.
  static Result<std::shared_ptr<const SafetensorsFile>> open(const std::string& path);

  /// As given to open().
  const std::string& path() const;

  /// By shard, then in order of their place in the file.
  std::span<const Tensor> tensors() const;
  /// Null when there is no such tensor.
  const Tensor* find(std::string_view name) const;
  /// The __metadata__ entries of all files.
  std::span<const std::pair<std::string, std::string>> metadata() const;

 private:
  struct Impl;
  explicit SafetensorsFile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace decant::safetensors
