#pragma once

// Included after vec_avx2.h.
#include "kernels/kernel_table.h"

namespace decant::kernels::DECANT_ISA {

/// Bytes or words of 8 rows.
using VI = __m256i;
inline constexpr int kFastRows = 4, kExactRows = 2;

inline VI load_codes(const std::byte* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
inline VI set1_word(int32_t v) { return _mm256_set1_epi32(v); }
inline VI zero_words() { return _mm256_setzero_si256(); }
inline VI low_nibbles(VI v) { return _mm256_and_si256(v, _mm256_set1_epi8(15)); }
inline VI high_nibbles(VI v) { return _mm256_and_si256(_mm256_srli_epi16(v, 4), _mm256_set1_epi8(15)); }
inline VI add_words(VI a, VI b) { return _mm256_add_epi32(a, b); }
inline VI sub_words(VI a, VI b) { return _mm256_sub_epi32(a, b); }
template <int N>
inline VI shift_words_left(VI v) {
  return _mm256_slli_epi32(v, N);
}
/// Byte I of each word.
template <int I>
inline VI byte_of_words(VI v) {
  return _mm256_and_si256(_mm256_srli_epi32(v, 8 * I), _mm256_set1_epi32(255));
}
inline VF to_floats(VI v) { return _mm256_cvtepi32_ps(v); }
inline VF load_bytes(const std::byte* p) {
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
}
inline VF fnma(VF a, VF b, VF c) { return _mm256_fnmadd_ps(a, b, c); }

inline constexpr bool kDotWords = false;
inline VI dot_words(VI acc, VI, VI) { return acc; }
/// acc (16 bits) + products of two unsigned bytes below 16 and two signed ones.
inline VI dot_halves(VI acc, VI codes, VI x) { return _mm256_add_epi16(acc, _mm256_maddubs_epi16(codes, x)); }
inline VI sum_halves(VI v, int16_t factor) { return _mm256_madd_epi16(v, _mm256_set1_epi16(factor)); }

}  // namespace decant::kernels::DECANT_ISA

#include "kernels/simd/low_bit_body.h"
