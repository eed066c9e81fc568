#define DECANT_ISA avx512_vnni

#include "kernels/simd/vec_avx512.h"

#include "kernels/simd/low_bit_avx512.h"

namespace decant::kernels {

const LowBitKernels* avx512_vnni_low_bit() { return avx512_vnni::low_bit_kernels(); }

}  // namespace decant::kernels
