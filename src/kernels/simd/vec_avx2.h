#pragma once

#include <immintrin.h>

#include "kernels/simd/element.h"

namespace decant::kernels::DECANT_ISA {

/// 8 floats. The operators + - * / work on it lane by lane.
using VF = __m256;
using Mask = __m256;  // all bits of a lane set: true
inline constexpr int kLanes = 8;
inline constexpr int kTileRows =
    6;  // 6 x 2 accumulators, two vectors of B and a broadcast: 15 of 16 registers
inline constexpr int kAStride = 8;
inline constexpr int kDotRows = 4;
inline constexpr int kDotCols = 2;
inline constexpr int kValueVecs = 2;

inline __m256i first(int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

inline VF zero() { return _mm256_setzero_ps(); }
inline VF set1(float x) { return _mm256_set1_ps(x); }
inline VF load(const float* p) { return _mm256_loadu_ps(p); }
inline VF load_n(const float* p, int64_t n) { return _mm256_maskload_ps(p, first(n)); }
inline void store(float* p, VF v) { _mm256_storeu_ps(p, v); }
inline void store_n(float* p, VF v, int64_t n) { _mm256_maskstore_ps(p, first(n), v); }

template <typename T>
inline __m128i load16_n(const T* p, int64_t n) {
  alignas(16) T t[8] = {};
  for (int64_t i = 0; i < n; ++i) t[i] = p[i];
  return _mm_load_si128(reinterpret_cast<const __m128i*>(t));
}
template <typename T>
inline void store16_n(T* p, __m128i v, int64_t n) {
  alignas(16) T t[8];
  _mm_store_si128(reinterpret_cast<__m128i*>(t), v);
  for (int64_t i = 0; i < n; ++i) p[i] = t[i];
}
inline VF widen(__m128i bf16) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bf16), 16));
}
inline __m128i narrow(VF v) {
  const __m256i bits = _mm256_castps_si256(v);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256i high = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
  const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(high, high), 0xd8);
  return _mm256_castsi256_si128(packed);
}
inline VF load(const F16* p) { return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
inline VF load_n(const F16* p, int64_t n) { return _mm256_cvtph_ps(load16_n(p, n)); }
inline void store(F16* p, VF v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}
inline void store_n(F16* p, VF v, int64_t n) {
  store16_n(p, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT), n);
}
inline VF load(const Bf16* p) { return widen(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
inline VF load_n(const Bf16* p, int64_t n) { return widen(load16_n(p, n)); }
inline void store(Bf16* p, VF v) { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), narrow(v)); }
inline void store_n(Bf16* p, VF v, int64_t n) { store16_n(p, narrow(v), n); }

inline VF fma(VF a, VF b, VF c) { return _mm256_fmadd_ps(a, b, c); }
inline VF max(VF a, VF b) { return _mm256_max_ps(a, b); }
inline VF min(VF a, VF b) { return _mm256_min_ps(a, b); }
inline VF sqrt(VF a) { return _mm256_sqrt_ps(a); }
inline VF abs(VF a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
inline VF copysign(VF magnitude, VF sign) {
  const __m256 bit = _mm256_set1_ps(-0.0f);
  return _mm256_or_ps(_mm256_andnot_ps(bit, magnitude), _mm256_and_ps(bit, sign));
}
inline VF round(VF a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
inline VF power_of_two(__m256i n) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
}
/// a * 2^n for integer n in [-250, 250], with gradual underflow and overflow to infinity.
inline VF scale_by_power(VF a, VF n) {
  const __m256i i = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(i, 1);
  return a * power_of_two(half) * power_of_two(_mm256_sub_epi32(i, half));
}
inline Mask less(VF a, VF b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
inline VF select(Mask m, VF if_true, VF if_false) { return _mm256_blendv_ps(if_false, if_true, m); }

inline float sum(VF v) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}
inline float max_of(VF v) {
  __m128 s = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_max_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}

/// Lane i is the sum of r[i].
inline VF sum_each(const VF (&r)[8]) {
  __m256 a[4], b[2];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i)
    a[i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]) + _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    b[i] = _mm256_shuffle_ps(a[2 * i], a[2 * i + 1], 0x44) + _mm256_shuffle_ps(a[2 * i], a[2 * i + 1], 0xee);
  }
  return _mm256_permute2f128_ps(b[0], b[1], 0x20) + _mm256_permute2f128_ps(b[0], b[1], 0x31);
}

inline void prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }
inline void prefetch_l2(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T1); }

/// 8 x 8 transpose in place.
inline void transpose(VF (&r)[8]) {
  __m256 t[8];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    t[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) {
      r[4 * i + 2 * j] = _mm256_shuffle_ps(t[4 * i + j], t[4 * i + 2 + j], 0x44);
      r[4 * i + 2 * j + 1] = _mm256_shuffle_ps(t[4 * i + j], t[4 * i + 2 + j], 0xee);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m256 lo = _mm256_permute2f128_ps(r[i], r[4 + i], 0x20);
    const __m256 hi = _mm256_permute2f128_ps(r[i], r[4 + i], 0x31);
    r[i] = lo;
    r[4 + i] = hi;
  }
}

}  // namespace decant::kernels::DECANT_ISA
