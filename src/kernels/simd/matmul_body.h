#pragma once

// Included after a vector header.
#include "kernels/kernel_table.h"

namespace decant::kernels::DECANT_ISA {

inline constexpr int kTileCols = 2 * kLanes;
inline constexpr int kStreamRows = 8;          // rows of B read side by side
inline constexpr int64_t kFarPrefetch = 1024;  // bytes
inline constexpr int64_t kPackAhead = 24;      // rows of B

/// Adds rows [0, R) of B, weighted by a column block of A, to C. `from` is what C starts from: 0 as it is, 1
/// bias or zero, 2 bias + C.
template <int R, typename T>
inline void stream_rows(int64_t m, int64_t n, const float* a, int64_t lda, const T* b, int64_t ldb,
                        const T* next, const float* bias, int from, float* c, int64_t ldc) {
  const int64_t whole = full(n, kLanes), tail = n - whole;
  if (m == 1) {
    VF w[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) w[r] = set1(a[r]);
    const auto start = [&](int64_t j) {
      if (from == 0) return load(c + j);
      const VF base = bias ? load(bias + j) : zero();
      return from == 1 ? base : base + load(c + j);
    };
    for (int64_t j = 0; j < whole; j += kLanes) {
      VF y = start(j), z = zero();
#pragma GCC unroll 8
      for (int r = 0; r < R; r += 2) {
        y = fma(w[r], load(b + r * ldb + j), y);
        if (r + 1 < R) z = fma(w[r + 1], load(b + (r + 1) * ldb + j), z);
      }
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) prefetch(next + r * ldb + j);
      store(c + j, y + z);
    }
    if (tail > 0) {
      VF y = from == 0 ? load_n(c + whole, tail) : bias ? load_n(bias + whole, tail) : zero();
      if (from == 2) y = y + load_n(c + whole, tail);
      for (int r = 0; r < R; ++r) y = fma(w[r], load_n(b + r * ldb + whole, tail), y);
      store_n(c + whole, y, tail);
    }
    return;
  }
  for (int64_t j = 0; j < n; j += kLanes) {
    const int64_t left = n - j;
    const bool part = left < kLanes;
    VF row[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      row[r] = part ? load_n(b + r * ldb + j, left) : load(b + r * ldb + j);
      prefetch(next + r * ldb + j);
    }
    const VF base = from == 0 || !bias ? zero() : part ? load_n(bias + j, left) : load(bias + j);
    for (int64_t i = 0; i < m; ++i) {
      float* const out = c + i * ldc + j;
      VF y = base, z = zero();
      if (from != 1) y = y + (part ? load_n(out, left) : load(out));
#pragma GCC unroll 8
      for (int r = 0; r < R; r += 2) {
        y = fma(set1(a[i * lda + r]), row[r], y);
        if (r + 1 < R) z = fma(set1(a[i * lda + r + 1]), row[r + 1], z);
      }
      if (part) {
        store_n(out, y + z, left);
      } else {
        store(out, y + z);
      }
    }
  }
}

/// B is [k, n]: eight rows at a time, C stays in the first cache level (the caller's column slabs see to
/// that).
template <typename T>
void gemv_kn(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const void* weights, int64_t ldb,
             const float* bias, bool accumulate, float* c, int64_t ldc) {
  const T* b = static_cast<const T*>(weights);
  int from = accumulate ? 2 : 1;
  if (k == 0) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j)
        c[i * ldc + j] = (accumulate ? c[i * ldc + j] : 0.0f) + (bias ? bias[j] : 0.0f);
    }
  }
  // Narrow slabs start anew in every row: fetch the next rows (past the last one is what the memory holds
  // next, often another split of the same matrix). Wide ones are eight long streams: fetch further along.
  const bool narrow_slab = n * static_cast<int64_t>(sizeof(T)) <= 8192;
  int64_t r = 0;
  for (; r + kStreamRows <= k; r += kStreamRows) {
    const T* const rows = b + r * ldb;
    const T* const next =
        rows + (narrow_slab ? kStreamRows * ldb : kFarPrefetch / static_cast<int64_t>(sizeof(T)));
    stream_rows<kStreamRows>(m, n, a + r, lda, rows, ldb, next, bias, from, c, ldc);
    from = 0;
  }
  for (; r < k; ++r) {
    stream_rows<1>(m, n, a + r, lda, b + r * ldb, ldb, b + r * ldb, bias, from, c, ldc);
    from = 0;
  }
}

template <int N, int M, typename T>
inline void dot_block(int64_t k, const float* a, int64_t lda, const T* b, int64_t ldb, const float* bias,
                      bool accumulate, float* c, int64_t ldc) {
  VF acc[N][M];
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < M; ++j) acc[i][j] = zero();
  }
  const int64_t whole = full(k, kLanes), tail = k - whole;
  for (int64_t x = 0; x < whole; x += kLanes) {
    VF row[N];
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) {
      row[i] = load(b + i * ldb + x);
      prefetch(b + (N + i) * ldb + x);
    }
#pragma GCC unroll 8
    for (int j = 0; j < M; ++j) {
      const VF v = load(a + j * lda + x);
#pragma GCC unroll 8
      for (int i = 0; i < N; ++i) acc[i][j] = fma(row[i], v, acc[i][j]);
    }
  }
  if (tail > 0) {
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) {
      const VF row = load_n(b + i * ldb + whole, tail);
#pragma GCC unroll 8
      for (int j = 0; j < M; ++j) acc[i][j] = fma(row, load_n(a + j * lda + whole, tail), acc[i][j]);
    }
  }
#pragma GCC unroll 8
  for (int j = 0; j < M; ++j) {
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) {
      float y = sum(acc[i][j]) + (bias ? bias[i] : 0.0f);
      if (accumulate) y += c[j * ldc + i];
      c[j * ldc + i] = y;
    }
  }
}

template <int N, typename T>
inline void dot_rows(int64_t m, int64_t k, const float* a, int64_t lda, const T* b, int64_t ldb,
                     const float* bias, bool accumulate, float* c, int64_t ldc) {
  int64_t j = 0;
  for (; j + kDotCols <= m; j += kDotCols) {
    dot_block<N, kDotCols>(k, a + j * lda, lda, b, ldb, bias, accumulate, c + j * ldc, ldc);
  }
  if (kDotCols > 2 && j + 2 <= m) {
    dot_block<N, 2>(k, a + j * lda, lda, b, ldb, bias, accumulate, c + j * ldc, ldc);
    j += 2;
  }
  for (; j < m; ++j) dot_block<N, 1>(k, a + j * lda, lda, b, ldb, bias, accumulate, c + j * ldc, ldc);
}

/// B is [n, k]: dot products with a few rows of B at a time.
template <typename T>
void gemv_nk(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const void* weights, int64_t ldb,
             const float* bias, bool accumulate, float* c, int64_t ldc) {
  const T* b = static_cast<const T*>(weights);
  int64_t i = 0;
  for (; i + kDotRows <= n; i += kDotRows) {
    dot_rows<kDotRows>(m, k, a, lda, b + i * ldb, ldb, bias ? bias + i : nullptr, accumulate, c + i, ldc);
  }
  for (; i < n; ++i)
    dot_rows<1>(m, k, a, lda, b + i * ldb, ldb, bias ? bias + i : nullptr, accumulate, c + i, ldc);
}

/// Writes [k][stride] from `lines` rows of a [lines, k] matrix, `stride` being a multiple of the lanes;
/// missing rows are zeros.
template <typename T>
inline void pack_transposed(int64_t k, int64_t lines, const T* src, int64_t ld, int stride, float* packed) {
  const int64_t whole = full(k, kLanes), tail = k - whole;
  for (int64_t line = 0; line < stride; line += kLanes) {
    for (int64_t x = 0; x < k; x += kLanes) {
      VF r[kLanes];
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) {
        const T* const p = src + (line + i) * ld + x;
        r[i] = line + i >= lines ? zero() : x < whole ? load(p) : load_n(p, tail);
      }
      transpose(r);
      const int64_t steps = x < whole ? kLanes : tail;
      float* const out = packed + x * stride + line;
      for (int64_t i = 0; i < steps; ++i) store(out + i * stride, r[i]);
    }
  }
}

inline void pack_a(int64_t rows, int64_t k, const float* a, int64_t lda, float* packed) {
  pack_transposed(k, rows, a, lda, kAStride, packed);
}

template <typename T>
void pack_b_nk(int64_t k, int64_t n, const void* b, int64_t ldb, float* packed) {
  pack_transposed(k, n, static_cast<const T*>(b), ldb, kTileCols, packed);
}

template <typename T>
void pack_b_kn(int64_t k, int64_t n, const void* weights, int64_t ldb, float* packed) {
  const T* b = static_cast<const T*>(weights);
  if (n >= kTileCols) {
    for (int64_t r = 0; r < k; ++r) {
      prefetch(b + (r + kPackAhead) * ldb);
      prefetch(b + (r + kPackAhead) * ldb + kTileCols - 1);
      store(packed + r * kTileCols, load(b + r * ldb));
      store(packed + r * kTileCols + kLanes, load(b + r * ldb + kLanes));
    }
    return;
  }
  const int64_t n0 = n < kLanes ? n : kLanes, n1 = n - n0;
  for (int64_t r = 0; r < k; ++r) {
    store(packed + r * kTileCols, load_n(b + r * ldb, n0));
    store(packed + r * kTileCols + kLanes, n1 > 0 ? load_n(b + r * ldb + kLanes, n1) : zero());
  }
}

/// Element x of row i of A is a[x * Step + i * Row]; `next(x, b0, b1)` gives the two vectors of B in step x.
template <int M, int Step, int Row, typename F>
inline void tile_rows(const TileArgs& g, F next) {
  VF acc[M][2];
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i) acc[i][0] = acc[i][1] = zero();
  const float* a = g.a;
  const std::byte* fetch = g.fetch;
#pragma GCC unroll 2
  for (int64_t x = 0; x < g.k; ++x) {
    prefetch(g.ahead + x * Step);
    prefetch_l2(fetch);
    fetch += g.fetch_stride;
    VF b0, b1;
    next(x, b0, b1);
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) {
      const VF v = set1(a[x * Step + i * Row]);
      acc[i][0] = fma(v, b0, acc[i][0]);
      acc[i][1] = fma(v, b1, acc[i][1]);
    }
  }
  const VF bias0 = g.bias ? load(g.bias) : zero(), bias1 = g.bias ? load(g.bias + kLanes) : zero();
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i) {
    float* const row = g.c + i * g.ldc;
    VF y0 = acc[i][0] + bias0, y1 = acc[i][1] + bias1;
    if (g.accumulate) {
      y0 = y0 + load(row);
      y1 = y1 + load(row + kLanes);
    }
    store(row, y0);
    store(row + kLanes, y1);
  }
}

template <int M, int Step = kAStride, int Row = 1>
void tile(const TileArgs& g) {
  const float* const b = g.packed;
  tile_rows<M, Step, Row>(g, [b](int64_t x, VF& b0, VF& b1) {
    b0 = load(b + x * kTileCols);
    b1 = load(b + x * kTileCols + kLanes);
  });
}

template <int M, typename T, int Step = kAStride, int Row = 1>
void first_tile(const TileArgs& g) {
  const T* b = static_cast<const T*>(g.b);
  const int64_t ldb = g.ldb;
  float* const packed = g.packed;
  tile_rows<M, Step, Row>(g, [=](int64_t x, VF& b0, VF& b1) {
    const T* const row = b + x * ldb;
    prefetch(row + kPackAhead * ldb);
    prefetch(row + kPackAhead * ldb + kTileCols - 1);
    b0 = load(row);
    b1 = load(row + kLanes);
    store(packed + x * kTileCols, b0);
    store(packed + x * kTileCols + kLanes, b1);
  });
}

template <int M>
inline void fill_tiles(KernelTable& t) {
  if constexpr (M > 0) {
    t.tile[M - 1] = tile<M>;
    t.first_tile[kElementF32][M - 1] = first_tile<M, float>;
    t.first_tile[kElementF16][M - 1] = first_tile<M, F16>;
    t.first_tile[kElementBf16][M - 1] = first_tile<M, Bf16>;
    t.value_tile[M - 1] = tile<M, 1, kScoreStride>;
    t.first_value_tile[kElementF32][M - 1] = first_tile<M, float, 1, kScoreStride>;
    t.first_value_tile[kElementF16][M - 1] = first_tile<M, F16, 1, kScoreStride>;
    t.first_value_tile[kElementBf16][M - 1] = first_tile<M, Bf16, 1, kScoreStride>;
    fill_tiles<M - 1>(t);
  }
}

template <typename T>
inline void fill_matmul(KernelTable& t, int element) {
  t.gemv_kn[element] = gemv_kn<T>;
  t.gemv_nk[element] = gemv_nk<T>;
  t.pack_b_kn[element] = pack_b_kn<T>;
  t.pack_b_nk[element] = pack_b_nk<T>;
}

inline void fill_matmul(KernelTable& t) {
  t.tile_rows = kTileRows;
  t.tile_cols = kTileCols;
  t.a_stride = kAStride;
  t.pack_a = pack_a;
  fill_tiles<kTileRows>(t);
  fill_matmul<float>(t, kElementF32);
  fill_matmul<F16>(t, kElementF16);
  fill_matmul<Bf16>(t, kElementBf16);
}

}  // namespace decant::kernels::DECANT_ISA
