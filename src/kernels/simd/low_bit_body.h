#pragma once

// Included by the low_bit_*.h of an instruction set.
namespace decant::kernels::DECANT_ISA {

inline constexpr int kLowBitParts = 16 / kLanes;  // vectors that hold one number for each row of a group

inline VF load_number(const std::byte* p, bool half, int64_t i) {
  if (half) return load(reinterpret_cast<const F16*>(p) + i);
  return load(reinterpret_cast<const float*>(p) + i);
}

/// Sums of products of codes and digits of one step; where 16-bit sums are added up, in two parts for 8 bits.
template <int Bits>
struct CodeSum {
  VI word, low, high;

  /// `start`: -8 times the sum of the digits.
  void begin(VI start, bool centered) {
    const VI scaled = Bits == 8 ? shift_words_left<4>(start) : start;
    word = centered ? scaled : zero_words();
    if constexpr (!kDotWords) low = high = zero_words();
  }
  void add(VI codes, VI x) {
    if constexpr (kDotWords) {
      word = dot_words(word, codes, x);
    } else if constexpr (Bits == 4) {
      low = dot_halves(low, codes, x);
    } else {
      low = dot_halves(low, low_nibbles(codes), x);
      high = dot_halves(high, high_nibbles(codes), x);
    }
  }
  VI sum() const {
    if constexpr (kDotWords) return word;
    const VI s = add_words(word, sum_halves(low, 1));
    return Bits == 4 ? s : add_words(s, sum_halves(high, 16));
  }
};

template <int Bits, int D>
inline VF join_digits(const CodeSum<Bits> (&sums)[D]) {
  if constexpr (D == 1) {
    return to_floats(sums[0].sum());
  } else if constexpr (Bits == 4) {  // below 2^31
    const VI upper = add_words(shift_words_left<14>(sums[2].sum()), shift_words_left<7>(sums[1].sum()));
    return to_floats(add_words(upper, sums[0].sum()));
  } else {
    const VF lower = fma(set1(128.0f), to_floats(sums[1].sum()), to_floats(sums[0].sum()));
    return fma(set1(16384.0f), to_floats(sums[2].sum()), lower);
  }
}

/// Sums of (code - center) * digit over all of a step (Half -1) or its half 0 or 1, for M rows of
/// activations.
template <int Bits, int Half, int M, int D>
inline void step_sums(const std::byte* codes, const int32_t* x, const float* numbers, bool centered,
                      VF (&out)[M]) {
  constexpr int kNumbers = low_bit_numbers(D);
  CodeSum<Bits> sums[M][D];
#pragma GCC unroll 8
  for (int t = 0; t < M; ++t) {
#pragma GCC unroll 3
    for (int d = 0; d < D; ++d) {
      const float* const n = numbers + t * kNumbers;
      const auto start = [](const float* p) {
        int32_t v;
        __builtin_memcpy(&v, p, sizeof(v));
        return set1_word(v);
      };
      VI first = start(n + 2 + d);
      if constexpr (Half >= 0) {
        const VI lower = start(n + 3 + D + d);
        first = Half == 0 ? lower : sub_words(first, lower);
      }
      sums[t][d].begin(first, centered);
    }
  }
  const auto add = [&](VI v, int word) {
#pragma GCC unroll 8
    for (int t = 0; t < M; ++t) {
#pragma GCC unroll 3
      for (int d = 0; d < D; ++d) sums[t][d].add(v, set1_word(x[(word * M + t) * D + d]));
    }
  };
  if constexpr (Bits == 4) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const VI v = load_codes(codes + 64 * j);
      if constexpr (Half != 1) add(low_nibbles(v), j);
      if constexpr (Half != 0) add(high_nibbles(v), 4 + j);
    }
  } else {
#pragma GCC unroll 8
    for (int j = Half == 1 ? 4 : 0; j < (Half == 0 ? 4 : 8); ++j) add(load_codes(codes + 64 * j), j);
  }
#pragma GCC unroll 8
  for (int t = 0; t < M; ++t) out[t] = join_digits<Bits, D>(sums[t]);
}

/// totals += scales of block `block` times `sums`, with what the zeros are.
template <int Bits, int M>
inline void add_block(const LowBitArgs& g, const std::byte* group, int64_t block, int part,
                      const VF (&sums)[M], const float (&x_sums)[M], VF (&totals)[M]) {
  const int64_t at = block * 16 + part * kLanes;
  const VF scale = load_number(group, g.half_scales, at);
  if (g.zero == kZeroCodes) {
    const VF zero = load_bytes(group + g.zeros_at + at) - set1(Bits == 4 ? 8.0f : 128.0f);
#pragma GCC unroll 8
    for (int t = 0; t < M; ++t) totals[t] = fma(scale, fnma(zero, set1(x_sums[t]), sums[t]), totals[t]);
    return;
  }
#pragma GCC unroll 8
  for (int t = 0; t < M; ++t) totals[t] = fma(scale, sums[t], totals[t]);
  if (g.zero != kZeroMinimum) return;
  const VF minimum = load_number(group + g.zeros_at, g.half_scales, at);
#pragma GCC unroll 8
  for (int t = 0; t < M; ++t) totals[t] = fma(minimum, set1(x_sums[t]), totals[t]);
}

template <int M>
inline void store_group(const LowBitArgs& g, int64_t column, const VF (&totals)[M]) {
  const int64_t left = g.n - column;
  if (left <= 0) return;
  const bool part = left < kLanes;
  const VF bias = !g.bias ? zero() : part ? load_n(g.bias + column, left) : load(g.bias + column);
#pragma GCC unroll 8
  for (int t = 0; t < M; ++t) {
    float* const c = g.c + t * g.ldc + column;
    VF y = totals[t] + bias;
    if (g.accumulate) y = y + (part ? load_n(c, left) : load(c));
    if (part) {
      store_n(c, y, left);
    } else {
      store(c, y);
    }
  }
}

template <int Bits, bool Halves, int M, int D>
void low_bit_rows(const LowBitArgs& g) {
  constexpr int64_t kStepBytes = Bits == 4 ? 256 : 512;
  constexpr int kNumbers = low_bit_numbers(D);
  const bool zeros = g.zero != kZeroCenter, centered = g.zero != kZeroMinimum;
  const std::byte* group = g.group;
  for (int64_t i = 0; i < g.groups; ++i, group += g.group_bytes) {
    for (int part = 0; part < kLowBitParts; ++part) {
      VF totals[M];
#pragma GCC unroll 8
      for (int t = 0; t < M; ++t) totals[t] = zero();
      const std::byte* codes = group + g.codes_at + part * kLanes * 4;
      const int32_t* x = g.digits;
      const float* numbers = g.numbers;
      int64_t block = 0;
      for (int64_t step = 0; step < g.steps;) {
        VF sums[M];
        float x_sums[M] = {};
        const auto next = [&] {
          codes += kStepBytes;
          x += 8 * M * D;
          numbers += M * kNumbers;
          ++step;
        };
        if constexpr (Halves) {
          if (part == 0) {
#pragma GCC unroll 8
            for (int64_t line = 0; line < kStepBytes; line += 64) prefetch(codes + g.ahead + line);
          }
          VF dots[M];
          step_sums<Bits, 0, M, D>(codes, x, numbers, centered, dots);
#pragma GCC unroll 8
          for (int t = 0; t < M; ++t) {
            sums[t] = set1(numbers[t * kNumbers]) * dots[t];
            x_sums[t] = numbers[t * kNumbers + 2 + D];
          }
          add_block<Bits, M>(g, group, block++, part, sums, x_sums, totals);
          step_sums<Bits, 1, M, D>(codes, x, numbers, centered, dots);
#pragma GCC unroll 8
          for (int t = 0; t < M; ++t) {
            sums[t] = set1(numbers[t * kNumbers]) * dots[t];
            x_sums[t] = numbers[t * kNumbers + 1] - numbers[t * kNumbers + 2 + D];
          }
          next();
        } else {
          const int64_t end = step + g.block_steps < g.steps ? step + g.block_steps : g.steps;
#pragma GCC unroll 8
          for (int t = 0; t < M; ++t) sums[t] = zero();
          while (step < end) {
            if (part == 0) {
#pragma GCC unroll 8
              for (int64_t line = 0; line < kStepBytes; line += 64) prefetch(codes + g.ahead + line);
            }
            VF dots[M];
            step_sums<Bits, -1, M, D>(codes, x, numbers, centered, dots);
#pragma GCC unroll 8
            for (int t = 0; t < M; ++t) sums[t] = fma(set1(numbers[t * kNumbers]), dots[t], sums[t]);
            if (zeros) {
#pragma GCC unroll 8
              for (int t = 0; t < M; ++t) x_sums[t] += numbers[t * kNumbers + 1];
            }
            next();
          }
        }
        add_block<Bits, M>(g, group, block++, part, sums, x_sums, totals);
      }
      store_group<M>(g, i * 16 + part * kLanes, totals);
    }
  }
}

template <int D>
void quantize_digits(const float* x, int64_t k, int64_t m, int64_t row, int32_t* digits, float* numbers) {
  constexpr int kNumbers = low_bit_numbers(D);
  constexpr float kLargest = D == 1 ? 127.0f : 127.0f * 16384;
  digits += row * D;
  numbers += row * kNumbers;
  for (int64_t k0 = 0; k0 < k; k0 += 32, digits += 8 * m * D, numbers += m * kNumbers) {
    float rest[32];
    const float* v = x + k0;
    if (k - k0 < 32) {
      for (int i = 0; i < 32; ++i) rest[i] = k0 + i < k ? v[i] : 0.0f;
      v = rest;
    }
    VF largest = zero(), probe = zero();
#pragma GCC unroll 8
    for (int i = 0; i < 32; i += kLanes) {
      const VF a = load(v + i);
      largest = max(abs(a), largest);
      probe = fma(a, zero(), probe);  // NaN where a is no number
    }
    const float top = max_of(largest), check = sum(probe);
    const bool finite = check == 0.0f, some = finite && top > 1e-30f;
    const VF factor = set1(some ? kLargest / top : 0.0f);
    float rounded[32];
    // Adding 1.5 * 2^23 rounds to an integer.
    const VF magic = set1(12582912.0f);
#pragma GCC unroll 8
    for (int i = 0; i < 32; i += kLanes) {
      const VF a = some ? load(v + i) : zero();
      store(rounded + i, (a * factor + magic) - magic);
    }
    alignas(64) int8_t parts[D][32];
    int32_t sums[D] = {}, lower[D] = {};
    for (int i = 0; i < 32; ++i) {
      int32_t q = static_cast<int32_t>(rounded[i]);
      if constexpr (D == 3) {
        const int32_t low = ((q + 64) & 127) - 64;
        q = (q - low) >> 7;
        const int32_t middle = ((q + 64) & 127) - 64;
        q = (q - middle) >> 7;
        parts[0][i] = static_cast<int8_t>(low);
        parts[1][i] = static_cast<int8_t>(middle);
      }
      parts[D - 1][i] = static_cast<int8_t>(q);
    }
    for (int d = 0; d < D; ++d) {
      for (int i = 0; i < 16; ++i) lower[d] += parts[d][i];
      for (int i = 16; i < 32; ++i) sums[d] += parts[d][i];
      sums[d] += lower[d];
      for (int j = 0; j < 8; ++j) __builtin_memcpy(digits + j * m * D + d, parts[d] + 4 * j, 4);
    }
    const float scale = finite ? top / kLargest : __builtin_nanf("");
    const auto whole = [](const int32_t* s) {
      const float first = static_cast<float>(s[0]);
      if constexpr (D == 1) return first;
      return static_cast<float>(s[D - 1]) * 16384.0f + static_cast<float>(s[D == 3 ? 1 : 0]) * 128.0f + first;
    };
    numbers[0] = scale;
    numbers[1] = scale * whole(sums);
    numbers[2 + D] = scale * whole(lower);
    for (int d = 0; d < D; ++d) {
      const int32_t all = -8 * sums[d], half = -8 * lower[d];
      __builtin_memcpy(numbers + 2 + d, &all, 4);
      __builtin_memcpy(numbers + 3 + D + d, &half, 4);
    }
  }
}

template <int Bits, bool Halves>
void decode_steps(const LowBitArgs& g, int64_t first, int64_t steps, float* out, int64_t stride) {
  const VF center = set1(g.zero == kZeroMinimum ? 0.0f : Bits == 4 ? 8.0f : 128.0f);
  for (int part = 0; part < kLowBitParts; ++part) {
    for (int64_t step = first; step < first + steps; ++step) {
      const std::byte* const codes =
          g.group + g.codes_at + step * (Bits == 4 ? 256 : 512) + part * kLanes * 4;
      float* const to = out + (step - first) * 32 * stride + part * kLanes;
      for (int half = 0; half < 2; ++half) {
        const int64_t block = Halves ? 2 * step + half : step / g.block_steps;
        const int64_t at = block * 16 + part * kLanes;
        const VF scale = load_number(g.group, g.half_scales, at);
        const VF zero_point = g.zero == kZeroCodes ? load_bytes(g.group + g.zeros_at + at) : center;
        const VF minimum =
            g.zero == kZeroMinimum ? load_number(g.group + g.zeros_at, g.half_scales, at) : zero();
        for (int j = 0; j < 4; ++j) {
          const VI v = load_codes(codes + 64 * (Bits == 4 ? j : 4 * half + j));
          const VI q = Bits == 8 ? v : half == 0 ? low_nibbles(v) : high_nibbles(v);
          float* const row = to + (16 * half + 4 * j) * stride;
          const auto put = [&](int64_t i, VI code) {
            store(row + i * stride, fma(to_floats(code) - zero_point, scale, minimum));
          };
          put(0, byte_of_words<0>(q));
          put(1, byte_of_words<1>(q));
          put(2, byte_of_words<2>(q));
          put(3, byte_of_words<3>(q));
        }
      }
    }
  }
}

template <int Bits, bool Halves, int D, int Most>
inline void fill_low_bit_rows(LowBitKernels::Rows (&rows)[4]) {
  rows[0] = low_bit_rows<Bits, Halves, 1, D>;
  if constexpr (Most >= 2) rows[1] = low_bit_rows<Bits, Halves, 2, D>;
  if constexpr (Most >= 4) rows[2] = low_bit_rows<Bits, Halves, 4, D>;
  if constexpr (Most >= 8) rows[3] = low_bit_rows<Bits, Halves, 8, D>;
}

inline const LowBitKernels* low_bit_kernels() {
  static const LowBitKernels filled = [] {
    LowBitKernels k{};
    k.most_rows[0] = kFastRows;
    k.most_rows[1] = kExactRows;
    fill_low_bit_rows<4, false, 1, kFastRows>(k.rows[0][0][0]);
    fill_low_bit_rows<4, true, 1, kFastRows>(k.rows[0][0][1]);
    fill_low_bit_rows<8, false, 1, kFastRows>(k.rows[0][1][0]);
    fill_low_bit_rows<8, true, 1, kFastRows>(k.rows[0][1][1]);
    fill_low_bit_rows<4, false, 3, kExactRows>(k.rows[1][0][0]);
    fill_low_bit_rows<4, true, 3, kExactRows>(k.rows[1][0][1]);
    fill_low_bit_rows<8, false, 3, kExactRows>(k.rows[1][1][0]);
    fill_low_bit_rows<8, true, 3, kExactRows>(k.rows[1][1][1]);
    k.quantize[0] = quantize_digits<1>;
    k.quantize[1] = quantize_digits<3>;
    k.decode[0][0] = decode_steps<4, false>;
    k.decode[0][1] = decode_steps<4, true>;
    k.decode[1][0] = decode_steps<8, false>;
    k.decode[1][1] = decode_steps<8, true>;
    return k;
  }();
  return &filled;
}

}  // namespace decant::kernels::DECANT_ISA
