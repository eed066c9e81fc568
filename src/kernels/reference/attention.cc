#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/reference/reference.h"

namespace decant::kernels::reference {

void attention(const AttentionArgs& g) {
  const int64_t group = g.kv_heads > 0 ? g.q_heads / g.kv_heads : 1;
  for (int64_t b = 0; b < g.batch; ++b) {
    const int64_t length = g.kv_lengths ? g.kv_lengths[b] : g.kv_length;
    const int64_t offset = g.offsets ? g.offsets[b] : g.offset;
    for (int64_t h = 0; h < g.q_heads; ++h) {
      const int64_t kv_head = h / group;
      for (int64_t i = 0; i < g.q_len; ++i) {
        const float* const q = g.q + b * g.q_strides.batch + h * g.q_strides.head + i * g.q_strides.position;
        std::vector<double> scores(static_cast<size_t>(length), -INFINITY);
        double top = -INFINITY;
        for (int64_t j = 0; j < length; ++j) {
          if (g.causal && j > i + offset) continue;
          if (g.window_left >= 0 && j < i + offset - g.window_left) continue;
          double added = 0;
          if (g.mask) {
            const int64_t at = b * g.mask_batch_stride + h * g.mask_head_stride + i * g.mask_query_stride +
                               j * g.mask_key_stride;
            if (g.mask_dtype == DType::kBool) {
              if (static_cast<const uint8_t*>(g.mask)[at] == 0) continue;
            } else {
              added = static_cast<const float*>(g.mask)[at];
              if (added == -INFINITY) continue;
            }
          }
          const int64_t k = b * g.k_strides.batch + kv_head * g.k_strides.head + j * g.k_strides.position;
          double dot = 0;
          for (int64_t d = 0; d < g.qk_dim; ++d) dot += q[d] * element(g.k, g.kv_dtype, k + d);
          double score = dot * g.scale;
          if (g.softcap > 0) score = g.softcap * std::tanh(score / g.softcap);
          scores[static_cast<size_t>(j)] = score + added;
          top = std::max(top, score + added);
        }
        float* const out =
            g.out + b * g.out_strides.batch + h * g.out_strides.head + i * g.out_strides.position;
        for (int64_t d = 0; d < g.v_dim; ++d) {
          double sum = 0, total = 0;
          const double sink = g.sinks && top != -INFINITY ? std::exp(g.sinks[h] - top) : 0.0;
          for (int64_t j = 0; j < length; ++j) {
            const double score = scores[static_cast<size_t>(j)];
            if (score == -INFINITY) continue;
            const int64_t v = b * g.v_strides.batch + kv_head * g.v_strides.head + j * g.v_strides.position;
            total += std::exp(score - top);
            sum += std::exp(score - top) * element(g.v, g.kv_dtype, v + d);
          }
          out[d] = total > 0 ? static_cast<float>(sum / (total + sink)) : g.empty_row;
        }
      }
    }
  }
}

}  // namespace decant::kernels::reference
