#pragma once

#include <cstdint>
#include <optional>

#include "ir/constant.h"

namespace decant::ir {

/// A packed matrix [rows, columns] as codes in blocks along its rows, each with a scale: what MatMulNBits
/// multiplies with and GatherBlockQuantized looks up. Weights are (code - zero) * scale.
struct RowBlocks {
  int bits = 4;        ///< 2 to 8
  int64_t block = 32;  ///< a power of two, 16 to 256
  ConstantPtr codes;   ///< uint8 [rows, blocks, block * bits / 8], the first code in the low bits
  ConstantPtr scales;  ///< [rows, blocks]
  /// uint8 [rows, ceil(blocks * bits / 8)]: codes; numbers of the scales' dtype, [rows, blocks]; null:
  /// 2^(bits - 1).
  ConstantPtr zeros;

  bool zero_numbers() const { return zeros && zeros->dtype() != DType::kUInt8; }
};

/// Codes that are in this form already are handed on as they are; others (GGUF blocks, scales for other
/// blocks, two's complement, a matrix packed the other way round) are rearranged when they are read. Every
/// weight keeps its value, but for one rounding of zero points that were minima, and of scales that
/// `scale_dtype` has no room for. Nothing for dense matrices and where there is no such form: values from a
/// table, columns in activation order, minima beside codes above 4 bits.
std::optional<RowBlocks> row_blocks(const ConstantPtr& matrix, DType scale_dtype);

}  // namespace decant::ir
