#pragma once

#include "kernels/simd/element.h"

namespace decant::kernels::DECANT_ISA {

/// 4 floats in the compiler's own vector type: what every processor of an architecture has, without
/// intrinsics.
using VF = float __attribute__((vector_size(16)));
using VI = int __attribute__((vector_size(16)));
using Mask = VI;
inline constexpr int kLanes = 4;
inline constexpr int kTileRows = 4;
inline constexpr int kAStride = 4;
inline constexpr int kDotRows = 2;
inline constexpr int kDotCols = 2;
inline constexpr int kValueVecs = 2;

inline VF zero() { return VF{}; }
inline VF set1(float x) { return VF{x, x, x, x}; }
inline VF load(const float* p) {
  VF v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}
inline VF load_n(const float* p, int64_t n) {
  VF v{};
  for (int64_t i = 0; i < n; ++i) v[i] = p[i];
  return v;
}
inline void store(float* p, VF v) { __builtin_memcpy(p, &v, sizeof(v)); }
inline void store_n(float* p, VF v, int64_t n) {
  for (int64_t i = 0; i < n; ++i) p[i] = v[i];
}

inline uint32_t bits_of(float x) {
  uint32_t u;
  __builtin_memcpy(&u, &x, sizeof(u));
  return u;
}
inline float float_of(uint32_t u) {
  float x;
  __builtin_memcpy(&x, &u, sizeof(x));
  return x;
}
inline float widen(F16 h) {
  const uint32_t sign = (h.bits & 0x8000u) << 16, magnitude = h.bits & 0x7fffu;
  if (magnitude >= 0x7c00u) return float_of(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  if (magnitude >= 0x0400u) return float_of(sign | ((magnitude << 13) + 0x38000000u));
  return float_of(sign | bits_of(static_cast<float>(magnitude) * 0x1p-24f));
}
inline float widen(Bf16 h) { return float_of(uint32_t{h.bits} << 16); }
inline void narrow(float x, F16& out) {
  const uint32_t bits = bits_of(x), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  uint32_t r;
  if (magnitude > 0x7f800000u) {
    r = 0x7e00u;
  } else if (magnitude >= 0x477ff000u) {  // rounds past the largest, 65504
    r = 0x7c00u;
  } else if (magnitude < 0x38800000u) {  // subnormal: the addition rounds
    r = bits_of(float_of(magnitude) + 0.5f) - 0x3f000000u;
  } else {
    r = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  }
  out.bits = static_cast<uint16_t>(sign | r);
}
inline void narrow(float x, Bf16& out) {
  const uint32_t bits = bits_of(x);
  out.bits = static_cast<uint16_t>((x != x ? bits | 0x400000u : bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
inline VF load(const F16* p) { return VF{widen(p[0]), widen(p[1]), widen(p[2]), widen(p[3])}; }
inline VF load(const Bf16* p) { return VF{widen(p[0]), widen(p[1]), widen(p[2]), widen(p[3])}; }
template <typename T>
inline VF load_n(const T* p, int64_t n) {
  VF v{};
  for (int64_t i = 0; i < n; ++i) v[i] = widen(p[i]);
  return v;
}
template <typename T>
inline void store_n(T* p, VF v, int64_t n) {
  for (int64_t i = 0; i < n; ++i) narrow(v[i], p[i]);
}
inline void store(F16* p, VF v) { store_n(p, v, 4); }
inline void store(Bf16* p, VF v) { store_n(p, v, 4); }

inline VF fma(VF a, VF b, VF c) { return a * b + c; }
inline Mask less(VF a, VF b) { return a < b; }
inline VF select(Mask m, VF if_true, VF if_false) {
  return reinterpret_cast<VF>((m & reinterpret_cast<VI>(if_true)) | (~m & reinterpret_cast<VI>(if_false)));
}
inline VF max(VF a, VF b) { return select(b < a, a, b); }
inline VF min(VF a, VF b) { return select(a < b, a, b); }
inline VF sqrt(VF a) {
  return VF{__builtin_sqrtf(a[0]), __builtin_sqrtf(a[1]), __builtin_sqrtf(a[2]), __builtin_sqrtf(a[3])};
}
inline constexpr int kSignBit = -0x7fffffff - 1;
inline VF abs(VF a) { return reinterpret_cast<VF>(reinterpret_cast<VI>(a) & ~kSignBit); }
inline VF copysign(VF magnitude, VF sign) {
  return reinterpret_cast<VF>((reinterpret_cast<VI>(magnitude) & ~kSignBit) |
                              (reinterpret_cast<VI>(sign) & kSignBit));
}
/// For |a| < 2^22.
inline VF round(VF a) {
  const VF magic = set1(0x1.8p23f);
  return (a + magic) - magic;
}
/// a * 2^n for integer n in [-250, 250], with gradual underflow and overflow to infinity.
inline VF scale_by_power(VF a, VF n) {
  const VI i = __builtin_convertvector(n, VI), half = i >> 1;
  return a * reinterpret_cast<VF>((half + 127) << 23) * reinterpret_cast<VF>((i - half + 127) << 23);
}
inline float sum(VF v) { return (v[0] + v[2]) + (v[1] + v[3]); }
inline float max_of(VF v) {
  const float a = v[0] < v[1] ? v[1] : v[0], b = v[2] < v[3] ? v[3] : v[2];
  return a < b ? b : a;
}
inline void prefetch(const void* p) { __builtin_prefetch(p); }
inline void prefetch_l2(const void* p) { __builtin_prefetch(p, 0, 2); }

/// 4 x 4 transpose in place.
inline void transpose(VF (&r)[4]) {
  const VF a = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5),
           b = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7);
  const VF c = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5),
           d = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);
  r[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
  r[1] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
  r[2] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
  r[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}

/// Lane i is the sum of r[i].
inline VF sum_each(const VF (&r)[4]) {
  VF t[4] = {r[0], r[1], r[2], r[3]};
  transpose(t);
  return (t[0] + t[2]) + (t[1] + t[3]);
}

}  // namespace decant::kernels::DECANT_ISA
