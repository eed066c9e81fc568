#pragma once

#include <cstddef>
#include <cstdint>

/// Storage types that the vector headers load from and store to. Each instruction set has its own copy of
/// everything here and in the headers beside it, in its own namespace: code compiled with wide flags must
/// never replace code compiled without.
namespace decant::kernels::DECANT_ISA {

struct F16 {
  uint16_t bits;
};
struct Bf16 {
  uint16_t bits;
};

/// Vectors of `lanes` that cover n, and the elements in the last one.
constexpr int64_t full(int64_t n, int lanes) { return n / lanes * lanes; }

}  // namespace decant::kernels::DECANT_ISA
