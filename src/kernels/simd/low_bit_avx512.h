#pragma once

// Included after vec_avx512.h. With AVX-512 VNNI a dot product is one instruction.
#include "kernels/kernel_table.h"

namespace decant::kernels::DECANT_ISA {

/// Bytes or words of 16 rows.
using VI = __m512i;
inline constexpr int kFastRows = 8, kExactRows = 4;

inline VI load_codes(const std::byte* p) { return _mm512_loadu_si512(p); }
inline VI set1_word(int32_t v) { return _mm512_set1_epi32(v); }
inline VI zero_words() { return _mm512_setzero_si512(); }
inline VI low_nibbles(VI v) { return _mm512_and_si512(v, _mm512_set1_epi8(15)); }
inline VI high_nibbles(VI v) { return _mm512_and_si512(_mm512_srli_epi16(v, 4), _mm512_set1_epi8(15)); }
inline VI add_words(VI a, VI b) { return _mm512_add_epi32(a, b); }
inline VI sub_words(VI a, VI b) { return _mm512_sub_epi32(a, b); }
template <int N>
inline VI shift_words_left(VI v) {
  return _mm512_slli_epi32(v, N);
}
/// Byte I of each word.
template <int I>
inline VI byte_of_words(VI v) {
  return _mm512_and_si512(_mm512_srli_epi32(v, 8 * I), _mm512_set1_epi32(255));
}
inline VF to_floats(VI v) { return _mm512_cvtepi32_ps(v); }
inline VF load_bytes(const std::byte* p) {
  return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}
inline VF fnma(VF a, VF b, VF c) { return _mm512_fnmadd_ps(a, b, c); }

#if defined(__AVX512VNNI__)
inline constexpr bool kDotWords = true;
/// acc + products of four unsigned and four signed bytes.
inline VI dot_words(VI acc, VI codes, VI x) { return _mm512_dpbusd_epi32(acc, codes, x); }
#else
inline constexpr bool kDotWords = false;
inline VI dot_words(VI acc, VI, VI) { return acc; }
#endif
/// acc (16 bits) + products of two unsigned bytes below 16 and two signed ones.
inline VI dot_halves(VI acc, VI codes, VI x) { return _mm512_add_epi16(acc, _mm512_maddubs_epi16(codes, x)); }
inline VI sum_halves(VI v, int16_t factor) { return _mm512_madd_epi16(v, _mm512_set1_epi16(factor)); }

}  // namespace decant::kernels::DECANT_ISA

#include "kernels/simd/low_bit_body.h"
