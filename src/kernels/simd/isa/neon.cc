#define DECANT_ISA neon

#include "kernels/simd/vec_neon.h"

#include "kernels/simd/table_body.h"

namespace decant::kernels {

const KernelTable* neon_table() { return neon::table("neon"); }

}  // namespace decant::kernels
