#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/reference/reference.h"

namespace decant::kernels::reference {

void rms_norm(const RmsNormArgs& g) {
  for (int64_t r = 0; r < g.rows; ++r) {
    std::vector<double> h(static_cast<size_t>(g.cols));
    double squares = 0;
    for (int64_t c = 0; c < g.cols; ++c) {
      double& v = h[static_cast<size_t>(c)];
      v = g.x[r * g.ldx + c];
      if (g.residual) v = g.x[r * g.ldx + c] + g.residual[r * g.ldx + c];
      squares += v * v;
    }
    const double scale = 1.0 / std::sqrt(squares / static_cast<double>(g.cols) + g.eps);
    for (int64_t c = 0; c < g.cols; ++c) {
      const double v = h[static_cast<size_t>(c)];
      if (g.residual && g.sum_out) g.sum_out[r * g.ldx + c] = static_cast<float>(v);
      g.y[r * g.ldy + c] = static_cast<float>(v * scale * (g.weight ? g.weight[c] : 1.0));
    }
  }
}

void layer_norm(int64_t rows, int64_t cols, const float* x, int64_t ldx, const float* weight,
                const float* bias, float eps, float* y, int64_t ldy) {
  const auto n = static_cast<double>(cols);
  for (int64_t r = 0; r < rows; ++r) {
    double mean = 0, variance = 0;
    for (int64_t c = 0; c < cols; ++c) mean += x[r * ldx + c] / n;
    for (int64_t c = 0; c < cols; ++c) variance += (x[r * ldx + c] - mean) * (x[r * ldx + c] - mean) / n;
    for (int64_t c = 0; c < cols; ++c) {
      double v = (x[r * ldx + c] - mean) / std::sqrt(variance + eps);
      if (weight) v *= weight[c];
      if (bias) v += bias[c];
      y[r * ldy + c] = static_cast<float>(v);
    }
  }
}

void softmax(int64_t rows, int64_t cols, const float* x, int64_t ldx, float* y, int64_t ldy) {
  for (int64_t r = 0; r < rows; ++r) {
    const double top = *std::max_element(x + r * ldx, x + r * ldx + cols);
    double total = 0;
    for (int64_t c = 0; c < cols; ++c) total += std::exp(x[r * ldx + c] - top);
    for (int64_t c = 0; c < cols; ++c)
      y[r * ldy + c] = static_cast<float>(std::exp(x[r * ldx + c] - top) / total);
  }
}

void rotary(const RotaryArgs& g) {
  const int64_t half = g.rotary_dim / 2;
  for (int64_t b = 0; b < g.batch; ++b) {
    for (int64_t s = 0; s < g.seq; ++s) {
      const int64_t row =
          g.positions ? g.positions[b * g.positions_batch_stride + s] : b * g.table_batch_rows + s;
      for (int64_t h = 0; h < g.heads; ++h) {
        const float* const x = g.x + b * g.x_strides.batch + h * g.x_strides.head + s * g.x_strides.position;
        float* const out =
            g.out + b * g.out_strides.batch + h * g.out_strides.head + s * g.out_strides.position;
        for (int64_t c = 0; c < half; ++c) {
          const int64_t first = g.interleaved ? 2 * c : c, second = g.interleaved ? 2 * c + 1 : c + half;
          const double cos = g.cos[row * g.table_row_stride + c], sin = g.sin[row * g.table_row_stride + c];
          const double u = x[first], v = x[second];
          out[first] = static_cast<float>(u * cos - v * sin);
          out[second] = static_cast<float>(v * cos + u * sin);
        }
        for (int64_t c = g.rotary_dim; c < g.head_dim; ++c) out[c] = x[c];
      }
    }
  }
}

int64_t argmax(const float* x, int64_t n) {
  int64_t best = 0;
  bool found = false;
  for (int64_t i = 0; i < n; ++i) {
    if (std::isnan(x[i]) || (found && x[i] <= x[best])) continue;
    best = i;
    found = true;
  }
  return best;
}

}  // namespace decant::kernels::reference
