#pragma once

#include <cstddef>

#include "base/encoding.h"

namespace decant {

/// Decodes `blocks` blocks at `src` (any alignment, blocks * block_bytes(encoding) bytes) into blocks *
/// block_elements(encoding) floats at `dst`. The result is bit-equal to the dequantization of the `gguf`
/// Python package: the operations and their order are the same, all in float32. Not for kDense (writes
/// nothing).
void decode_blocks(Encoding encoding, const std::byte* src, float* dst, size_t blocks);

}  // namespace decant
