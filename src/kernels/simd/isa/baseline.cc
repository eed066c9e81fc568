#define DECANT_ISA baseline

#include "kernels/simd/vec_generic.h"

#include "kernels/simd/table_body.h"

namespace decant::kernels {

const KernelTable* baseline_table() { return baseline::table("baseline"); }

}  // namespace decant::kernels
