#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.h"

namespace decant {

/// How a block of weights becomes codes c in [0, 2^bits) that stand for (c - zero) * scale.
struct BlockRounding {
  int bits = 4;                         ///< 4 or 8
  bool zero_points = false;             ///< a zero for each block; otherwise the middle, 2^(bits - 1)
  DType scale_dtype = DType::kFloat32;  ///< float32, float16 or bfloat16: what the scale is rounded to
  bool search = true;                   ///< false: the scale that spans the block, nothing tried beside it
};

inline constexpr size_t kMaxBlock = 256;

struct RoundedBlock {
  float scale = 0;   ///< exact in scale_dtype; may be negative; infinite when scale_dtype cannot hold it
  int zero = 0;      ///< in [0, 2^bits)
  double error = 0;  ///< sum of importance * (weight - decoded)²
};

/// Rounds `weights` (finite, 1 to kMaxBlock of them) to `codes`, as many. Scales around the one that spans
/// the block are tried, each also replaced by the least-squares fit to the codes that it gives; the least
/// error wins, which is never above that of plain rounding to nearest. Weights that lie on a grid of the form
/// keep their values, to one rounding of the scale. `importance` (>= 0, one for each weight; null: all 1)
/// weighs the squared errors. Deterministic: the same on every machine.
RoundedBlock round_block(const BlockRounding& how, std::span<const float> weights, const float* importance,
                         uint8_t* codes);

}  // namespace decant
