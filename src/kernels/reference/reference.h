#pragma once

#include "kernels/kernels.h"

/// The same operations as kernels.h, slow and obvious: one loop per index of the formula, sums in double, one
/// thread. They are what the fast kernels are tested against, and the reference backend's. Arguments mean the
/// same as in kernels.h.
namespace decant::kernels::reference {

/// Element `index` of f32, f16 or bf16 data.
double element(const void* data, DType dtype, int64_t index);

void matmul(int64_t m, int64_t k, const float* a, int64_t lda, const MatmulPart& part);
void attention(const AttentionArgs& args);
void rms_norm(const RmsNormArgs& args);
void layer_norm(int64_t rows, int64_t cols, const float* x, int64_t ldx, const float* weight,
                const float* bias, float eps, float* y, int64_t ldy);
void softmax(int64_t rows, int64_t cols, const float* x, int64_t ldx, float* y, int64_t ldy);
void rotary(const RotaryArgs& args);
double unary(UnaryOp op, double x);
double binary(BinaryOp op, double a, double b);
int64_t argmax(const float* x, int64_t n);

}  // namespace decant::kernels::reference
