#define DECANT_ISA avx512

#include "kernels/simd/vec_avx512.h"

#include "kernels/simd/table_body.h"

namespace decant::kernels {

const KernelTable* avx512_table() { return avx512::table("avx512"); }

}  // namespace decant::kernels
