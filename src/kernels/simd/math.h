#pragma once

// Included after a vector header. Polynomials are minimax fits (Lawson iteration) made for these ranges;
// errors are relative to the exact function, in f32 arithmetic: exp 1.5 ulp, tanh 3 ulp, erf 4 ulp.

namespace decant::kernels::DECANT_ISA {

/// 0 below -104, gradual underflow from -87.3, infinity from 88.8; NaN stays.
inline VF exp(VF x) {
  const VF clamped = min(set1(89.0f), max(set1(-104.5f), x));
  const VF n = round(clamped * set1(1.44269504f));
  // x - n ln 2, with ln 2 in two parts so that the product with the first is exact.
  VF r = fma(n, set1(-0.693359375f), clamped);
  r = fma(n, set1(2.12194440e-4f), r);
  VF p = set1(1.395047682e-3f);
  p = fma(p, r, set1(8.368882434e-3f));
  p = fma(p, r, set1(4.166620601e-2f));
  p = fma(p, r, set1(1.666651890e-1f));
  p = fma(p, r, set1(5.000000095e-1f));
  return scale_by_power(fma(p, r * r, r) + set1(1.0f), n);
}

inline VF sigmoid(VF x) { return set1(1.0f) / (set1(1.0f) + exp(zero() - x)); }

inline VF tanh(VF x) {
  const VF a = abs(x), z = x * x;
  VF p = set1(-5.717036561e-3f);
  p = fma(p, z, set1(2.065057900e-2f));
  p = fma(p, z, set1(-5.374349526e-2f));
  p = fma(p, z, set1(1.333149125e-1f));
  p = fma(p, z, set1(-3.333328392e-1f));
  const VF near = fma(p * z, x, x);
  const VF far = set1(1.0f) - set1(2.0f) / (exp(a + a) + set1(1.0f));
  return select(less(a, set1(0.625f)), near, copysign(far, x));
}

inline VF erf(VF x) {
  const VF a = abs(x), z = x * x;
  VF p = set1(7.853857661e-5f);
  p = fma(p, z, set1(-8.010192506e-4f));
  p = fma(p, z, set1(5.188327558e-3f));
  p = fma(p, z, set1(-2.685381187e-2f));
  p = fma(p, z, set1(1.128358515e-1f));
  p = fma(p, z, set1(-3.761262582e-1f));
  p = fma(p, z, set1(1.128379166f));
  // 1 - exp(-a^2) Q(1 / (1 + a / 2)) for a >= 1.
  const VF t = set1(1.0f) / fma(set1(0.5f), a, set1(1.0f));
  VF q = set1(6.652408996e-3f);
  q = fma(q, t, set1(-2.540866191e-1f));
  q = fma(q, t, set1(6.705463084e-1f));
  q = fma(q, t, set1(-9.065612059e-2f));
  q = fma(q, t, set1(4.081661943e-1f));
  q = fma(q, t, set1(2.570792339e-1f));
  q = fma(q, t, set1(2.073645081e-3f));
  const VF far = set1(1.0f) - exp(zero() - z) * q;
  return select(less(a, set1(1.0f)), p * x, copysign(far, x));
}

inline VF gelu_erf(VF x) {
  const VF half = set1(0.5f) * x;
  return fma(half, erf(x * set1(0.707106781f)), half);
}

/// Hendrycks & Gimpel 2016, the tanh form.
inline VF gelu_tanh(VF x) {
  const VF inner = set1(0.797884561f) * fma(set1(0.044715f) * x, x * x, x);
  const VF half = set1(0.5f) * x;
  return fma(half, tanh(inner), half);
}

}  // namespace decant::kernels::DECANT_ISA
