#pragma once

// Included after a vector header: everything that is written once and built for each instruction set.
#include "kernels/simd/math.h"

#include "kernels/simd/attend_body.h"
#include "kernels/simd/integer_body.h"
#include "kernels/simd/matmul_body.h"
#include "kernels/simd/rows_body.h"

namespace decant::kernels::DECANT_ISA {

inline const KernelTable* table(const char* name) {
  static const KernelTable filled = [name] {
    KernelTable t{};
    t.name = name;
    fill_matmul(t);
    fill_attend(t);
    fill_rows(t);
    fill_integer(t);
    return t;
  }();
  return &filled;
}

}  // namespace decant::kernels::DECANT_ISA
