#pragma once

#include <arm_neon.h>

#include "kernels/simd/element.h"

namespace decant::kernels::DECANT_ISA {

/// 4 floats. The operators + - * / work on it lane by lane.
using VF = float32x4_t;
using Mask = uint32x4_t;
inline constexpr int kLanes = 4;
inline constexpr int kTileRows = 8;  // 8 x 2 accumulators, two vectors of B, two of A
inline constexpr int kAStride = 8;
inline constexpr int kDotRows = 4;
inline constexpr int kDotCols = 4;
inline constexpr int kValueVecs = 4;

inline VF zero() { return vdupq_n_f32(0); }
inline VF set1(float x) { return vdupq_n_f32(x); }
inline VF load(const float* p) { return vld1q_f32(p); }
inline void store(float* p, VF v) { vst1q_f32(p, v); }
inline VF load_n(const float* p, int64_t n) {
  float t[4] = {};
  for (int64_t i = 0; i < n; ++i) t[i] = p[i];
  return vld1q_f32(t);
}
inline void store_n(float* p, VF v, int64_t n) {
  float t[4];
  vst1q_f32(t, v);
  for (int64_t i = 0; i < n; ++i) p[i] = t[i];
}

inline VF widen_f16(uint16x4_t h) { return vcvt_f32_f16(vreinterpret_f16_u16(h)); }
inline uint16x4_t narrow_f16(VF v) { return vreinterpret_u16_f16(vcvt_f16_f32(v)); }
inline VF widen_bf16(uint16x4_t h) { return vreinterpretq_f32_u32(vshll_n_u16(h, 16)); }
inline uint16x4_t narrow_bf16(VF v) {
  const uint32x4_t bits = vreinterpretq_u32_f32(v);
  const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
  const uint32x4_t rounded = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
  const uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));
  return vshrn_n_u32(vbslq_u32(vceqq_f32(v, v), rounded, quiet), 16);
}
inline uint16x4_t load16(const void* p) { return vld1_u16(static_cast<const uint16_t*>(p)); }
template <typename T>
inline uint16x4_t load16_n(const T* p, int64_t n) {
  uint16_t t[4] = {};
  for (int64_t i = 0; i < n; ++i) t[i] = p[i].bits;
  return vld1_u16(t);
}
template <typename T>
inline void store16_n(T* p, uint16x4_t v, int64_t n) {
  uint16_t t[4];
  vst1_u16(t, v);
  for (int64_t i = 0; i < n; ++i) p[i].bits = t[i];
}
inline VF load(const F16* p) { return widen_f16(load16(p)); }
inline VF load_n(const F16* p, int64_t n) { return widen_f16(load16_n(p, n)); }
inline void store(F16* p, VF v) { store16_n(p, narrow_f16(v), 4); }
inline void store_n(F16* p, VF v, int64_t n) { store16_n(p, narrow_f16(v), n); }
inline VF load(const Bf16* p) { return widen_bf16(load16(p)); }
inline VF load_n(const Bf16* p, int64_t n) { return widen_bf16(load16_n(p, n)); }
inline void store(Bf16* p, VF v) { store16_n(p, narrow_bf16(v), 4); }
inline void store_n(Bf16* p, VF v, int64_t n) { store16_n(p, narrow_bf16(v), n); }

inline VF fma(VF a, VF b, VF c) { return vfmaq_f32(c, a, b); }
inline VF max(VF a, VF b) { return vmaxq_f32(a, b); }
inline VF min(VF a, VF b) { return vminq_f32(a, b); }
inline VF sqrt(VF a) { return vsqrtq_f32(a); }
inline VF abs(VF a) { return vabsq_f32(a); }
inline VF copysign(VF magnitude, VF sign) { return vbslq_f32(vdupq_n_u32(0x80000000u), sign, magnitude); }
inline VF round(VF a) { return vrndnq_f32(a); }
inline VF power_of_two(int32x4_t n) {
  return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(n, vdupq_n_s32(127)), 23));
}
/// a * 2^n for integer n in [-250, 250], with gradual underflow and overflow to infinity.
inline VF scale_by_power(VF a, VF n) {
  const int32x4_t i = vcvtq_s32_f32(n), half = vshrq_n_s32(i, 1);
  return a * power_of_two(half) * power_of_two(vsubq_s32(i, half));
}
inline Mask less(VF a, VF b) { return vcltq_f32(a, b); }
inline VF select(Mask m, VF if_true, VF if_false) { return vbslq_f32(m, if_true, if_false); }
inline float sum(VF v) { return vaddvq_f32(v); }
inline float max_of(VF v) { return vmaxvq_f32(v); }
/// Lane i is the sum of r[i].
inline VF sum_each(const VF (&r)[4]) { return vpaddq_f32(vpaddq_f32(r[0], r[1]), vpaddq_f32(r[2], r[3])); }

inline void prefetch(const void* p) { __builtin_prefetch(p); }
inline void prefetch_l2(const void* p) { __builtin_prefetch(p, 0, 2); }

/// 4 x 4 transpose in place.
inline void transpose(VF (&r)[4]) {
  const float32x4x2_t a = vtrnq_f32(r[0], r[1]), b = vtrnq_f32(r[2], r[3]);
  r[0] = vcombine_f32(vget_low_f32(a.val[0]), vget_low_f32(b.val[0]));
  r[1] = vcombine_f32(vget_low_f32(a.val[1]), vget_low_f32(b.val[1]));
  r[2] = vcombine_f32(vget_high_f32(a.val[0]), vget_high_f32(b.val[0]));
  r[3] = vcombine_f32(vget_high_f32(a.val[1]), vget_high_f32(b.val[1]));
}

}  // namespace decant::kernels::DECANT_ISA
