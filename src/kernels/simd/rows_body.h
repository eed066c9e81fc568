#pragma once

// Included after a vector header and math.h.
#include "kernels/kernel_table.h"

namespace decant::kernels::DECANT_ISA {

/// y[i] = f(x[i]) with the tail in a partial vector.
template <typename F>
inline void map(int64_t n, float* y, F f) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, f([i](const float* p) { return load(p + i); }));
  if (i < n) store_n(y + i, f([i, n](const float* p) { return load_n(p + i, n - i); }), n - i);
}

/// Sum of f over [0, n); lanes past the end count as f of zeros must: f gets zeros there and its result is
/// cut.
template <typename F>
inline float reduce(int64_t n, F f) {
  VF a = zero(), b = zero();
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    a = f(a, i, int64_t{kLanes});
    b = f(b, i + kLanes, int64_t{kLanes});
  }
  for (; i + kLanes <= n; i += kLanes) a = f(a, i, int64_t{kLanes});
  if (i < n) b = f(b, i, n - i);
  return sum(a + b);
}

inline VF load_up_to(const float* p, int64_t n) { return n >= kLanes ? load(p) : load_n(p, n); }

inline void rms_norm_row(const float* x, const float* residual, float* sum_out, const float* weight,
                         float eps, float* y, int64_t n) {
  const float* h = x;
  float squares;
  if (residual != nullptr) {
    float* const total = sum_out != nullptr ? sum_out : y;
    squares = reduce(n, [&](VF acc, int64_t i, int64_t left) {
      const VF v = load_up_to(x + i, left) + load_up_to(residual + i, left);
      if (left >= kLanes) {
        store(total + i, v);
      } else {
        store_n(total + i, v, left);
      }
      return fma(v, v, acc);
    });
    h = total;
  } else {
    squares = reduce(n, [&](VF acc, int64_t i, int64_t left) {
      const VF v = load_up_to(x + i, left);
      return fma(v, v, acc);
    });
  }
  const VF r = set1(1.0f / __builtin_sqrtf(squares / static_cast<float>(n) + eps));
  if (weight != nullptr) {
    map(n, y, [&](auto at) { return at(h) * r * at(weight); });
  } else {
    map(n, y, [&](auto at) { return at(h) * r; });
  }
}

inline void layer_norm_row(const float* x, const float* weight, const float* bias, float eps, float* y,
                           int64_t n) {
  const float mean =
      reduce(n, [&](VF acc, int64_t i, int64_t left) { return acc + load_up_to(x + i, left); }) /
      static_cast<float>(n);
  const VF m = set1(mean);
  float squares = reduce(full(n, kLanes), [&](VF acc, int64_t i, int64_t) {
    const VF v = load(x + i) - m;
    return fma(v, v, acc);
  });
  for (int64_t i = full(n, kLanes); i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
  const VF r = set1(1.0f / __builtin_sqrtf(squares / static_cast<float>(n) + eps));
  map(n, y, [&](auto at) {
    VF v = (at(x) - m) * r;
    if (weight != nullptr) v = v * at(weight);
    return bias != nullptr ? v + at(bias) : v;
  });
}

inline void axpy(float a, const float* x, float* y, int64_t n) {
  const VF factor = set1(a);
  map(n, y, [&](auto at) { return fma(factor, at(x), at(y)); });
}

inline float max_value(const float* x, int64_t n) {
  VF a = set1(-__builtin_inff()), b = a;
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    a = max(load(x + i), a);  // in this order a NaN leaves `a` alone on x86
    b = max(load(x + i + kLanes), b);
  }
  float top = max_of(max(a, b));
  for (; i < n; ++i) top = top < x[i] ? x[i] : top;
  return top;
}

inline void softmax_row(const float* x, float* y, int64_t n) {
  const float top = max_value(x, n);
  const VF t = set1(top);
  map(n, y, [&](auto at) { return exp(at(x) - t); });
  const float total =
      reduce(n, [&](VF acc, int64_t i, int64_t left) { return acc + load_up_to(y + i, left); });
  const VF r = set1(1.0f / total);
  map(n, y, [&](auto at) { return at(y) * r; });
}

inline void rotary_half(const float* x, const float* cos, const float* sin, float* out, int64_t half) {
  int64_t i = 0;
  for (; i < half; i += kLanes) {
    const int64_t left = half - i;
    const VF a = load_up_to(x + i, left), b = load_up_to(x + half + i, left);
    const VF c = load_up_to(cos + i, left), s = load_up_to(sin + i, left);
    const VF first_half = a * c - b * s, second_half = b * c + a * s;
    if (left >= kLanes) {
      store(out + i, first_half);
      store(out + half + i, second_half);
    } else {
      store_n(out + i, first_half, left);
      store_n(out + half + i, second_half, left);
    }
  }
}

inline void rotary_interleaved(const float* x, const float* cos, const float* sin, float* out, int64_t half) {
  for (int64_t i = 0; i < half; ++i) {
    const float a = x[2 * i], b = x[2 * i + 1];
    out[2 * i] = a * cos[i] - b * sin[i];
    out[2 * i + 1] = b * cos[i] + a * sin[i];
  }
}

struct Sigmoid {
  static VF of(VF x) { return sigmoid(x); }
};
struct Silu {
  static VF of(VF x) { return x / (set1(1.0f) + exp(zero() - x)); }
};
struct Tanh {
  static VF of(VF x) { return tanh(x); }
};
struct Exp {
  static VF of(VF x) { return exp(x); }
};
struct GeluErf {
  static VF of(VF x) { return gelu_erf(x); }
};
struct GeluTanh {
  static VF of(VF x) { return gelu_tanh(x); }
};
struct Erf {
  static VF of(VF x) { return erf(x); }
};
struct Relu {
  static VF of(VF x) { return max(zero(), x); }
};
struct Neg {
  static VF of(VF x) { return zero() - x; }
};
struct Abs {
  static VF of(VF x) { return abs(x); }
};
struct Sqrt {
  static VF of(VF x) { return sqrt(x); }
};
struct Reciprocal {
  static VF of(VF x) { return set1(1.0f) / x; }
};
struct Square {
  static VF of(VF x) { return x * x; }
};

struct Add {
  static VF of(VF a, VF b) { return a + b; }
};
struct Sub {
  static VF of(VF a, VF b) { return a - b; }
};
struct Mul {
  static VF of(VF a, VF b) { return a * b; }
};
struct Div {
  static VF of(VF a, VF b) { return a / b; }
};
struct Min {
  static VF of(VF a, VF b) { return min(a, b); }
};
struct Max {
  static VF of(VF a, VF b) { return max(a, b); }
};

template <typename Op>
void unary(const float* x, float* y, int64_t n) {
  map(n, y, [&](auto at) { return Op::of(at(x)); });
}
template <typename Op>
void gated(const float* gate, const float* up, float* out, int64_t n) {
  map(n, out, [&](auto at) { return Op::of(at(gate)) * at(up); });
}
template <typename Op>
void binary(const float* a, const float* b, float* out, int64_t n) {
  map(n, out, [&](auto at) { return Op::of(at(a), at(b)); });
}
template <typename Op>
void binary_scalar(const float* a, float b, float* out, int64_t n) {
  const VF v = set1(b);
  map(n, out, [&](auto at) { return Op::of(at(a), v); });
}
template <typename Op>
void scalar_binary(float a, const float* b, float* out, int64_t n) {
  const VF v = set1(a);
  map(n, out, [&](auto at) { return Op::of(v, at(b)); });
}

template <typename T>
void to_f32(const void* x, float* y, int64_t n) {
  const T* const p = static_cast<const T*>(x);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, load(p + i));
  if (i < n) store_n(y + i, load_n(p + i, n - i), n - i);
}
template <typename T>
void from_f32(const float* x, void* y, int64_t n) {
  T* const p = static_cast<T*>(y);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(p + i, load(x + i));
  if (i < n) store_n(p + i, load_n(x + i, n - i), n - i);
}

/// In the order of UnaryOp and BinaryOp.
template <typename... Op>
inline void fill_unary(KernelTable& t) {
  int i = 0;
  ((t.unary[i] = unary<Op>, t.gated[i] = gated<Op>, ++i), ...);
}
template <typename... Op>
inline void fill_binary(KernelTable& t) {
  int i = 0;
  ((t.binary[i] = binary<Op>, t.binary_scalar[i] = binary_scalar<Op>, t.scalar_binary[i] = scalar_binary<Op>,
    ++i),
   ...);
}

inline void fill_rows(KernelTable& t) {
  t.rms_norm_row = rms_norm_row;
  t.layer_norm_row = layer_norm_row;
  t.softmax_row = softmax_row;
  t.rotary_half = rotary_half;
  t.rotary_interleaved = rotary_interleaved;
  t.max_value = max_value;
  t.axpy = axpy;
  fill_unary<Sigmoid, Silu, Tanh, Exp, GeluErf, GeluTanh, Erf, Relu, Neg, Abs, Sqrt, Reciprocal, Square>(t);
  fill_binary<Add, Sub, Mul, Div, Min, Max>(t);
  t.to_f32[kElementF32] = to_f32<float>;
  t.to_f32[kElementF16] = to_f32<F16>;
  t.to_f32[kElementBf16] = to_f32<Bf16>;
  t.from_f32[kElementF32] = from_f32<float>;
  t.from_f32[kElementF16] = from_f32<F16>;
  t.from_f32[kElementBf16] = from_f32<Bf16>;
}

}  // namespace decant::kernels::DECANT_ISA
