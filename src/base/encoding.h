#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/dtype.h"

namespace decant {

/// How the elements of a tensor are stored. kDense: one dtype value each. All others: GGUF blocks along the
/// last axis, each block a fixed number of elements in a fixed number of bytes; decoded they are float32. The
/// layouts are in block_formats.cc.
enum class Encoding : uint8_t {
  kDense = 0,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
};

/// "dense", "Q4_0", "Q2_K", ...: the spelling of GGUF tools.
std::string_view to_string(Encoding encoding);
std::optional<Encoding> encoding_from_string(std::string_view name);

/// Elements of one block: 1 (dense), 32 or 256.
size_t block_elements(Encoding encoding);
/// Bytes of one block; 0 for kDense, where it depends on the dtype.
size_t block_bytes(Encoding encoding);

/// Bytes of `elements` elements; `dtype` counts only for kDense. A part of a block counts as a whole one.
/// Precondition: elements <= kMaxElements (base/checked.h), so that nothing wraps.
uint64_t encoded_bytes(Encoding encoding, DType dtype, uint64_t elements);

}  // namespace decant
