#pragma once

#include <immintrin.h>

#include "kernels/simd/element.h"

namespace decant::kernels::DECANT_ISA {

/// 16 floats. The operators + - * / work on it lane by lane.
using VF = __m512;
using Mask = __mmask16;
inline constexpr int kLanes = 16;
inline constexpr int kTileRows =
    14;  // 14 x 2 accumulators, two vectors of B and a broadcast: 31 of 32 registers
inline constexpr int kAStride = 16;
inline constexpr int kDotRows = 4;    // rows of B in a transposed product
inline constexpr int kDotCols = 4;    // rows of A beside them: 16 accumulators
inline constexpr int kValueVecs = 4;  // vectors of the values in attention, by 4 rows: 16 accumulators

inline __mmask16 first(int64_t n) { return static_cast<__mmask16>((1u << n) - 1u); }

inline VF zero() { return _mm512_setzero_ps(); }
inline VF set1(float x) { return _mm512_set1_ps(x); }
inline VF load(const float* p) { return _mm512_loadu_ps(p); }
inline VF load_n(const float* p, int64_t n) { return _mm512_maskz_loadu_ps(first(n), p); }
inline void store(float* p, VF v) { _mm512_storeu_ps(p, v); }
inline void store_n(float* p, VF v, int64_t n) { _mm512_mask_storeu_ps(p, first(n), v); }

inline VF load(const F16* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
inline VF load_n(const F16* p, int64_t n) { return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(first(n), p)); }
inline void store(F16* p, VF v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}
inline void store_n(F16* p, VF v, int64_t n) {
  _mm256_mask_storeu_epi16(p, first(n), _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

inline VF widen(__m256i bf16) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bf16), 16));
}
inline __m256i narrow(VF v) {
  const __m512i bits = _mm512_castps_si512(v);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
  const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_mask_mov_epi32(rounded, nan, quiet), 16));
}
inline VF load(const Bf16* p) { return widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))); }
inline VF load_n(const Bf16* p, int64_t n) { return widen(_mm256_maskz_loadu_epi16(first(n), p)); }
inline void store(Bf16* p, VF v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), narrow(v)); }
inline void store_n(Bf16* p, VF v, int64_t n) { _mm256_mask_storeu_epi16(p, first(n), narrow(v)); }

inline VF fma(VF a, VF b, VF c) { return _mm512_fmadd_ps(a, b, c); }
inline VF max(VF a, VF b) { return _mm512_max_ps(a, b); }
inline VF min(VF a, VF b) { return _mm512_min_ps(a, b); }
inline VF sqrt(VF a) { return _mm512_sqrt_ps(a); }
inline VF abs(VF a) { return _mm512_abs_ps(a); }
inline VF copysign(VF magnitude, VF sign) {
  const __m512 bit = _mm512_set1_ps(-0.0f);
  return _mm512_or_ps(_mm512_andnot_ps(bit, magnitude), _mm512_and_ps(bit, sign));
}
inline VF round(VF a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
/// a * 2^n for integer n, with gradual underflow and overflow to infinity.
inline VF scale_by_power(VF a, VF n) { return _mm512_scalef_ps(a, n); }
inline Mask less(VF a, VF b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
inline VF select(Mask m, VF if_true, VF if_false) { return _mm512_mask_blend_ps(m, if_false, if_true); }

inline float sum(VF v) { return _mm512_reduce_add_ps(v); }
inline float max_of(VF v) { return _mm512_reduce_max_ps(v); }

/// Lane i is the sum of r[i]: 45 instructions, where 16 separate sums take over 100.
inline VF sum_each(const VF (&r)[16]) {
  __m512 a[8], b[4], c[2];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i)
    a[i] = _mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]) + _mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512d lo = _mm512_castps_pd(a[2 * i]), hi = _mm512_castps_pd(a[2 * i + 1]);
    b[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(lo, hi)) + _mm512_castpd_ps(_mm512_unpackhi_pd(lo, hi));
  }
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    c[i] = _mm512_shuffle_f32x4(b[2 * i], b[2 * i + 1], 0x88) +
           _mm512_shuffle_f32x4(b[2 * i], b[2 * i + 1], 0xdd);
  }
  return _mm512_shuffle_f32x4(c[0], c[1], 0x88) + _mm512_shuffle_f32x4(c[0], c[1], 0xdd);
}

inline void prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }
inline void prefetch_l2(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T1); }

/// 16 x 16 transpose in place.
inline void transpose(VF (&r)[16]) {
  __m512 t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 2; ++j) {
      const __m512d lo = _mm512_castps_pd(t[4 * i + j]), hi = _mm512_castps_pd(t[4 * i + 2 + j]);
      r[4 * i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(lo, hi));
      r[4 * i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(lo, hi));
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_f32x4(r[i], r[4 + i], 0x88);
    t[4 + i] = _mm512_shuffle_f32x4(r[i], r[4 + i], 0xdd);
    t[8 + i] = _mm512_shuffle_f32x4(r[8 + i], r[12 + i], 0x88);
    t[12 + i] = _mm512_shuffle_f32x4(r[8 + i], r[12 + i], 0xdd);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm512_shuffle_f32x4(t[i], t[8 + i], 0x88);
    r[8 + i] = _mm512_shuffle_f32x4(t[i], t[8 + i], 0xdd);
    r[4 + i] = _mm512_shuffle_f32x4(t[4 + i], t[12 + i], 0x88);
    r[12 + i] = _mm512_shuffle_f32x4(t[4 + i], t[12 + i], 0xdd);
  }
}

}  // namespace decant::kernels::DECANT_ISA
