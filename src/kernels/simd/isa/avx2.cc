#define DECANT_ISA avx2

#include "kernels/simd/vec_avx2.h"

#include "kernels/simd/low_bit_avx2.h"
#include "kernels/simd/table_body.h"

namespace decant::kernels {

const KernelTable* avx2_table() {
  static const KernelTable table = [] {
    KernelTable t = *avx2::table("avx2");
    t.low_bit = avx2::low_bit_kernels();
    return t;
  }();
  return &table;
}

}  // namespace decant::kernels
