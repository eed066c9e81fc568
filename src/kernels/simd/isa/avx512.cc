#define DECANT_ISA avx512

#include "kernels/simd/vec_avx512.h"

#include "kernels/simd/low_bit_avx512.h"
#include "kernels/simd/table_body.h"

namespace decant::kernels {

const KernelTable* avx512_table() {
  static const KernelTable table = [] {
    KernelTable t = *avx512::table("avx512");
    t.low_bit = avx512::low_bit_kernels();
    return t;
  }();
  return &table;
}

}  // namespace decant::kernels
