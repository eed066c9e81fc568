#include "base/half.h"
#include "kernels/reference/reference.h"

namespace decant::kernels::reference {

double element(const void* data, DType dtype, int64_t index) {
  switch (dtype) {
    case DType::kFloat16:
      return f16_to_float(static_cast<const uint16_t*>(data)[index]);
    case DType::kBFloat16:
      return bf16_to_float(static_cast<const uint16_t*>(data)[index]);
    default:
      return static_cast<const float*>(data)[index];
  }
}

void matmul(int64_t m, int64_t k, const float* a, int64_t lda, const MatmulPart& p) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < p.n; ++j) {
      double sum = p.bias ? p.bias[j] : 0.0;
      for (int64_t x = 0; x < k; ++x) {
        sum += static_cast<double>(a[i * lda + x]) *
               element(p.b, p.b_dtype, p.b_transposed ? j * p.ldb + x : x * p.ldb + j);
      }
      float& c = p.c[i * p.ldc + j];
      c = static_cast<float>(p.accumulate ? c + sum : sum);
    }
  }
}

}  // namespace decant::kernels::reference
