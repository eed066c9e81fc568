#include "kernels/kernels.h"

#include "kernels/kernel_table.h"

namespace decant::kernels {

const KernelTable* kernel_table(Isa isa) {
  switch (isa) {
    case Isa::kBaseline:
      return baseline_table();
#if defined(__x86_64__)
    case Isa::kAvx2:
      return avx2_table();
    case Isa::kAvx512:
      return avx512_table();
    case Isa::kAmx:
      return amx_table();
#elif defined(__aarch64__)
    case Isa::kNeon:
      return neon_table();
#endif
    default:
      return nullptr;
  }
}

}  // namespace decant::kernels
