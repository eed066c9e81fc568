#pragma once

// Included after a vector header and math.h.
#include "kernels/kernel_table.h"

namespace decant::kernels::DECANT_ISA {

inline constexpr float kMinusInfinity = -__builtin_inff();
inline constexpr int64_t kKeysAhead = 32;  // prefetched
inline constexpr int kQueryRows = 4;       // rows that share one read of the keys or values

inline void scale(float factor, float* x, int64_t n) {
  const VF f = set1(factor);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(x + i, load(x + i) * f);
  for (; i < n; ++i) x[i] *= factor;
}

inline float softmax_step(const SoftmaxStepArgs& s) {
  float* const x = s.scores;
  if (s.softcap > 0) {
    const VF cap = set1(s.softcap), inverse = set1(1.0f / s.softcap);
    for (int64_t i = 0; i < s.n; i += kLanes) {
      const int64_t left = s.n - i;
      if (left >= kLanes) {
        store(x + i, cap * tanh(load(x + i) * inverse));
      } else {
        store_n(x + i, cap * tanh(load_n(x + i, left) * inverse), left);
      }
    }
  }
  if (s.mask != nullptr) {
    if (s.mask_is_bool) {
      const auto* const mask = static_cast<const uint8_t*>(s.mask) + s.begin * s.mask_stride;
      if (s.mask_stride == 1) {
        for (int64_t i = 0; i < s.n; ++i) x[i] = mask[i] != 0 ? x[i] : kMinusInfinity;
      } else {
        for (int64_t i = 0; i < s.n; ++i) x[i] = mask[i * s.mask_stride] != 0 ? x[i] : kMinusInfinity;
      }
    } else {
      const auto* const mask = static_cast<const float*>(s.mask) + s.begin * s.mask_stride;
      if (s.mask_stride == 1) {
        for (int64_t i = 0; i < s.n; ++i) x[i] += mask[i];
      } else {
        for (int64_t i = 0; i < s.n; ++i) x[i] += mask[i * s.mask_stride];
      }
    }
  }
  for (int64_t i = 0, e = s.row_begin - s.begin; i < e && i < s.n; ++i) x[i] = kMinusInfinity;
  for (int64_t i = s.row_end > s.begin ? s.row_end - s.begin : 0; i < s.n; ++i) x[i] = kMinusInfinity;

  VF largest = set1(kMinusInfinity);
  const int64_t whole = full(s.n, kLanes);
  for (int64_t i = 0; i < whole; i += kLanes) largest = max(load(x + i), largest);
  float top = max_of(largest);
  for (int64_t i = whole; i < s.n; ++i) top = top < x[i] ? x[i] : top;
  const float before = *s.max;
  if (before > top) top = before;
  if (top == kMinusInfinity) {
    for (int64_t i = 0; i < s.n; ++i) x[i] = 0;
    return 1.0f;
  }
  const VF t = set1(top);
  VF total = zero();
  for (int64_t i = 0; i < whole; i += kLanes) {
    const VF e = exp(load(x + i) - t);
    store(x + i, e);
    total = total + e;
  }
  float added = sum(total);
  if (whole < s.n) {
    const int64_t left = s.n - whole;
    store_n(x + whole, exp(load_n(x + whole, left) - t), left);
    for (int64_t i = whole; i < s.n; ++i) added += x[i];
  }
  // Most chunks leave the maximum where it was.
  float factor = 1.0f;
  if (before != top) {
    float lanes[kLanes];
    store(lanes, exp(set1(before - top)));
    factor = lanes[0];
  }
  *s.sum = *s.sum * factor + added;
  *s.max = top;
  return factor;
}

/// Lanes of q[r] . k[j] for R rows and J keys, to be summed.
template <int R, int J, typename T>
inline void dot_keys(int64_t dim, const float* q, const T* k, int64_t k_stride, float* partial) {
  const int64_t whole = full(dim, kLanes), tail = dim - whole;
  VF acc[R][J];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j < J; ++j) acc[r][j] = zero();
  }
  for (int64_t d = 0; d < whole; d += kLanes) {
    VF key[J];
#pragma GCC unroll 4
    for (int j = 0; j < J; ++j) key[j] = load(k + j * k_stride + d);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const VF x = load(q + r * dim + d);
#pragma GCC unroll 4
      for (int j = 0; j < J; ++j) acc[r][j] = fma(x, key[j], acc[r][j]);
    }
  }
  if (tail > 0) {
#pragma GCC unroll 4
    for (int j = 0; j < J; ++j) {
      const VF key = load_n(k + j * k_stride + whole, tail);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) acc[r][j] = fma(key, load_n(q + r * dim + whole, tail), acc[r][j]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j < J; ++j) store(partial + (r * kLanes + j) * kLanes, acc[r][j]);
  }
}

/// scores[r][j] = q[r] . k[j] for R rows and n <= kLanes keys.
template <int R, typename T>
inline void score_keys(int64_t n, int64_t dim, const float* q, const T* k, int64_t k_stride, float* partial,
                       float* scores, int64_t ld) {
  int64_t key = 0;
  for (; key + kValueVecs <= n; key += kValueVecs) {
    dot_keys<R, kValueVecs>(dim, q, k + key * k_stride, k_stride, partial + key * kLanes);
  }
  for (; key < n; ++key) dot_keys<R, 1>(dim, q, k + key * k_stride, k_stride, partial + key * kLanes);
  for (int r = 0; r < R; ++r) {
    VF v[kLanes];
#pragma GCC unroll 16
    for (int j = 0; j < kLanes; ++j) v[j] = j < n ? load(partial + (r * kLanes + j) * kLanes) : zero();
    if (n == kLanes) {
      store(scores + r * ld, sum_each(v));
    } else {
      store_n(scores + r * ld, sum_each(v), n);
    }
  }
}

/// acc[r] = acc[r] * factor[r] + sum over j of p[r][j] v[j], R rows by V vectors of channels.
template <int R, int V, typename T>
inline void add_values(int64_t n, const float* p, int64_t ldp, const float* factor, const T* v,
                       int64_t v_stride, float* acc, int64_t ld_acc) {
  VF a[R][V];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int i = 0; i < V; ++i) a[r][i] = load(acc + r * ld_acc + i * kLanes) * set1(factor[r]);
  }
  for (int64_t j = 0; j < n; ++j) {
    VF value[V];
#pragma GCC unroll 4
    for (int i = 0; i < V; ++i) value[i] = load(v + j * v_stride + i * kLanes);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const VF w = set1(p[r * ldp + j]);
#pragma GCC unroll 4
      for (int i = 0; i < V; ++i) a[r][i] = fma(w, value[i], a[r][i]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int i = 0; i < V; ++i) store(acc + r * ld_acc + i * kLanes, a[r][i]);
  }
}

template <int R, typename T>
inline void add_values(int64_t n, int64_t dim, const float* p, int64_t ldp, const float* factor, const T* v,
                       int64_t v_stride, float* acc) {
  int64_t d = 0;
  for (; d + kValueVecs * kLanes <= dim; d += kValueVecs * kLanes) {
    add_values<R, kValueVecs>(n, p, ldp, factor, v + d, v_stride, acc + d, dim);
  }
  for (; d + kLanes <= dim; d += kLanes) add_values<R, 1>(n, p, ldp, factor, v + d, v_stride, acc + d, dim);
  if (d == dim) return;
  const int64_t tail = dim - d;
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
    VF a = load_n(acc + r * dim + d, tail) * set1(factor[r]);
    for (int64_t j = 0; j < n; ++j) a = fma(set1(p[r * ldp + j]), load_n(v + j * v_stride + d, tail), a);
    store_n(acc + r * dim + d, a, tail);
  }
}

/// f.template operator()<R>(r) for the rows [r, r + R), four at a time and then what is left.
template <typename F>
inline void for_rows(int64_t rows, F f) {
  int64_t r = 0;
  for (; r + kQueryRows <= rows; r += kQueryRows) f.template operator()<kQueryRows>(r);
  switch (rows - r) {
    case 1:
      return f.template operator()<1>(r);
    case 2:
      return f.template operator()<2>(r);
    case 3:
      return f.template operator()<3>(r);
    default:
      return;
  }
}

/// Online softmax over chunks of positions (Milakov & Gimelshein 2018); each key and value is read once per
/// four rows, the second time from the first cache level.
template <typename T>
void attend(const AttendArgs& g) {
  float* const scores = g.scratch;
  float* const factors = scores + g.rows * kAttendChunk;
  float* const partial = factors + g.rows;
  for (int64_t r = 0; r < g.rows; ++r) {
    g.max[r] = kMinusInfinity;
    g.sum[r] = 0;
  }
  for (int64_t i = 0; i < g.rows * g.v_dim; ++i) g.acc[i] = 0;
  for (int64_t begin = g.begin; begin < g.end; begin += kAttendChunk) {
    const int64_t n = g.end - begin < kAttendChunk ? g.end - begin : kAttendChunk;
    const T* const k = static_cast<const T*>(g.k) + begin * g.k_stride;
    const T* const v = static_cast<const T*>(g.v) + begin * g.v_stride;
    for (int64_t j = 0; j < n; j += kLanes) {
      const int64_t keys = n - j < kLanes ? n - j : kLanes;
      // The values of the same positions are needed next, and keys further on.
      constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T));
      for (int64_t i = j; i < j + keys; ++i) {
        for (int64_t d = 0; d < g.v_dim; d += kLine) prefetch(v + i * g.v_stride + d);
        for (int64_t d = 0; d < g.qk_dim; d += kLine) prefetch(k + (i + kKeysAhead) * g.k_stride + d);
      }
      for_rows(g.rows, [&]<int R>(int64_t r) {
        score_keys<R>(keys, g.qk_dim, g.q + r * g.qk_dim, k + j * g.k_stride, g.k_stride, partial,
                      scores + r * kAttendChunk + j, kAttendChunk);
      });
    }
    for (int64_t r = 0; r < g.rows; ++r) {
      SoftmaxStepArgs step;
      step.scores = scores + r * kAttendChunk;
      step.begin = begin;
      step.n = n;
      step.row_begin = g.row_begin[r];
      step.row_end = g.row_end[r];
      step.mask = g.row_mask ? g.row_mask[r] : nullptr;
      step.mask_is_bool = g.mask_is_bool;
      step.mask_stride = g.mask_stride;
      step.softcap = g.softcap;
      step.max = g.max + r;
      step.sum = g.sum + r;
      factors[r] = softmax_step(step);
    }
    for_rows(g.rows, [&]<int R>(int64_t r) {
      add_values<R>(n, g.v_dim, scores + r * kAttendChunk, kAttendChunk, factors + r, v, g.v_stride,
                    g.acc + r * g.v_dim);
    });
  }
}

inline void fill_attend(KernelTable& t) {
  t.attend[kElementF32] = attend<float>;
  t.attend[kElementF16] = attend<F16>;
  t.attend[kElementBf16] = attend<Bf16>;
  t.softmax_step = softmax_step;
  t.scale = scale;
}

}  // namespace decant::kernels::DECANT_ISA
