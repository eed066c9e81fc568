#define DECANT_ISA avx2

#include "kernels/simd/vec_avx2.h"

#include "kernels/simd/table_body.h"

namespace decant::kernels {

const KernelTable* avx2_table() { return avx2::table("avx2"); }

}  // namespace decant::kernels
