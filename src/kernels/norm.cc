#include "kernels/parallel.h"

namespace decant::kernels {

void rms_norm(const Context& ctx, const RmsNormArgs& g) {
  for_range(ctx, g.rows, 16.0 * static_cast<double>(g.cols), 1, [&](int, int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      ctx.table->rms_norm_row(g.x + r * g.ldx, g.residual ? g.residual + r * g.ldx : nullptr,
                              g.sum_out ? g.sum_out + r * g.ldx : nullptr, g.weight, g.eps, g.y + r * g.ldy,
                              g.cols);
    }
  });
}

void layer_norm(const Context& ctx, int64_t rows, int64_t cols, const float* x, int64_t ldx,
                const float* weight, const float* bias, float eps, float* y, int64_t ldy) {
  for_range(ctx, rows, 20.0 * static_cast<double>(cols), 1, [&](int, int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      ctx.table->layer_norm_row(x + r * ldx, weight, bias, eps, y + r * ldy, cols);
  });
}

void softmax(const Context& ctx, int64_t rows, int64_t cols, const float* x, int64_t ldx, float* y,
             int64_t ldy) {
  for_range(ctx, rows, 24.0 * static_cast<double>(cols), 1, [&](int, int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) ctx.table->softmax_row(x + r * ldx, y + r * ldy, cols);
  });
}

}  // namespace decant::kernels
