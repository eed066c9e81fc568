#include <cstring>

#include "kernels/parallel.h"

namespace decant::kernels {

void rotary(const Context& ctx, const RotaryArgs& g) {
  const auto rotate = g.interleaved ? ctx.table->rotary_interleaved : ctx.table->rotary_half;
  const int64_t half = g.rotary_dim / 2, rest = g.head_dim - g.rotary_dim;
  const double bytes = 12.0 * static_cast<double>(g.heads * g.head_dim);
  for_range(ctx, g.batch * g.seq, bytes, 1, [&](int, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t b = i / g.seq, s = i % g.seq;
      const int64_t row =
          g.positions ? g.positions[b * g.positions_batch_stride + s] : b * g.table_batch_rows + s;
      const float* const cos = g.cos + row * g.table_row_stride;
      const float* const sin = g.sin + row * g.table_row_stride;
      for (int64_t h = 0; h < g.heads; ++h) {
        const float* const x = g.x + b * g.x_strides.batch + h * g.x_strides.head + s * g.x_strides.position;
        float* const out =
            g.out + b * g.out_strides.batch + h * g.out_strides.head + s * g.out_strides.position;
        rotate(x, cos, sin, out, half);
        if (rest > 0 && out != x) {
          std::memcpy(out + g.rotary_dim, x + g.rotary_dim, static_cast<size_t>(rest) * sizeof(float));
        }
      }
    }
  });
}

}  // namespace decant::kernels
