#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/status.h"

namespace decant::safetensors {

/// A dense tensor to be written; `bytes` is row-major, little-endian, elements * size_of(dtype) long.
struct NamedTensor {
  std::string name;
  DType dtype = DType::kUndefined;
  std::vector<int64_t> dims;
  std::span<const std::byte> bytes;
};

/// Writes one safetensors file. Data is stored by falling element size, so that every tensor is aligned to
/// its elements; tensors of equal size keep the given order. The file appears under `path` only when
/// complete. kInvalidArgument for duplicate or non-UTF-8 names, sizes that disagree with dtype and dims, or
/// an undefined dtype.
Status write_safetensors(const std::string& path, std::span<const NamedTensor> tensors);

}  // namespace decant::safetensors
