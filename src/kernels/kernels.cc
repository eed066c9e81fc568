#include "kernels/kernels.h"

#include "kernels/kernel_table.h"

namespace decant::kernels {
#if defined(__x86_64__)
namespace {

/// AVX-512 tables do with VNNI where the processor has it.
KernelTable with_vnni(KernelTable table) {
  if (cpu_features().avx512_vnni) table.low_bit = avx512_vnni_low_bit();
  return table;
}

}  // namespace
#endif

const KernelTable* kernel_table(Isa isa) {
  switch (isa) {
    case Isa::kBaseline:
      return baseline_table();
#if defined(__x86_64__)
    case Isa::kAvx2:
      return avx2_table();
    case Isa::kAvx512: {
      static const KernelTable table = with_vnni(*avx512_table());
      return &table;
    }
    case Isa::kAmx: {
      static const KernelTable table = with_vnni(*amx_table());
      return &table;
    }
#elif defined(__aarch64__)
    case Isa::kNeon:
      return neon_table();
#endif
    default:
      return nullptr;
  }
}

}  // namespace decant::kernels
