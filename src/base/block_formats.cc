#include "base/block_formats.h"

#include <cstdint>
#include <cstring>

#include "base/half.h"

namespace decant {
namespace {

using Byte = unsigned char;

float half_at(const Byte* p) {
  uint16_t bits = 0;
  std::memcpy(&bits, p, sizeof(bits));
  return f16_to_float(bits);
}

uint32_t word_at(const Byte* p) {
  uint32_t bits = 0;
  std::memcpy(&bits, p, sizeof(bits));
  return bits;
}

// Blocks of 32. The first half of the elements is in the low nibbles, the second in the high ones.

/// f16 d, 16 bytes of nibbles: d * (q - 8).
void q4_0(const Byte* b, float* y) {
  const float d = half_at(b);
  const Byte* q = b + 2;
  for (int j = 0; j < 16; ++j) {
    y[j] = d * static_cast<float>((q[j] & 15) - 8);
    y[j + 16] = d * static_cast<float>((q[j] >> 4) - 8);
  }
}

/// f16 d, f16 m, 16 bytes of nibbles: d * q + m.
void q4_1(const Byte* b, float* y) {
  const float d = half_at(b);
  const float m = half_at(b + 2);
  const Byte* q = b + 4;
  for (int j = 0; j < 16; ++j) {
    y[j] = d * static_cast<float>(q[j] & 15) + m;
    y[j + 16] = d * static_cast<float>(q[j] >> 4) + m;
  }
}

/// f16 d, 32 fifth bits, 16 bytes of nibbles: d * (q - 16).
void q5_0(const Byte* b, float* y) {
  const float d = half_at(b);
  const uint32_t high = word_at(b + 2);
  const Byte* q = b + 6;
  for (int j = 0; j < 16; ++j) {
    const int q0 = (q[j] & 15) | static_cast<int>((high >> j) & 1u) << 4;
    const int q1 = (q[j] >> 4) | static_cast<int>((high >> (j + 16)) & 1u) << 4;
    y[j] = d * static_cast<float>(q0 - 16);
    y[j + 16] = d * static_cast<float>(q1 - 16);
  }
}

/// f16 d, f16 m, 32 fifth bits, 16 bytes of nibbles: d * q + m.
void q5_1(const Byte* b, float* y) {
  const float d = half_at(b);
  const float m = half_at(b + 2);
  const uint32_t high = word_at(b + 4);
  const Byte* q = b + 8;
  for (int j = 0; j < 16; ++j) {
    const int q0 = (q[j] & 15) | static_cast<int>((high >> j) & 1u) << 4;
    const int q1 = (q[j] >> 4) | static_cast<int>((high >> (j + 16)) & 1u) << 4;
    y[j] = d * static_cast<float>(q0) + m;
    y[j + 16] = d * static_cast<float>(q1) + m;
  }
}

/// f16 d, 32 signed bytes: q * d.
void q8_0(const Byte* b, float* y) {
  const float d = half_at(b);
  for (int j = 0; j < 32; ++j) y[j] = static_cast<float>(static_cast<int8_t>(b[2 + j])) * d;
}

// Super-blocks of 256: two halves of 128 elements, whose quants lie in planes of 32 (or 64) elements over the
// same bytes, low bits first.

/// 16 bytes of (scale, min) nibbles for groups of 16, 64 bytes of crumbs, f16 d, f16 dmin.
void q2_k(const Byte* b, float* y) {
  const Byte* scales = b;
  const Byte* q = b + 16;
  const float d = half_at(b + 80);
  const float dmin = half_at(b + 82);
  for (int group = 0; group < 16; ++group) {
    const float scale = d * static_cast<float>(scales[group] & 15);
    const float min = dmin * static_cast<float>(scales[group] >> 4);
    const Byte* plane = q + (group / 8) * 32 + (group % 2) * 16;
    const int shift = (group / 2) % 4 * 2;
    for (int j = 0; j < 16; ++j)
      y[group * 16 + j] = scale * static_cast<float>((plane[j] >> shift) & 3) - min;
  }
}

/// 32 bytes of third bits (set: no offset of 4), 64 bytes of crumbs, 16 scales of 6 bits (offset 32), f16 d.
void q3_k(const Byte* b, float* y) {
  const Byte* mask = b;
  const Byte* q = b + 32;
  const Byte* scales = b + 96;
  const float d = half_at(b + 108);
  for (int group = 0; group < 16; ++group) {
    const int low = group < 8 ? scales[group] & 15 : scales[group - 8] >> 4;
    const int high = (scales[8 + group % 4] >> (group / 4 * 2)) & 3;
    const float scale = d * static_cast<float>((low | high << 4) - 32);
    const Byte* plane = q + (group / 8) * 32 + (group % 2) * 16;
    const Byte* bits = mask + (group % 2) * 16;
    const int shift = (group / 2) % 4 * 2;
    const int bit = group / 2;
    for (int j = 0; j < 16; ++j) {
      const int offset = ((bits[j] >> bit) & 1) != 0 ? 0 : 4;
      y[group * 16 + j] = scale * static_cast<float>(((plane[j] >> shift) & 3) - offset);
    }
  }
}

/// The 6-bit scale and min of one of eight groups of 32, from 12 bytes: the first four pairs are in the low
/// six bits of bytes 0..3 and 4..7, whose top bits and the nibbles of bytes 8..11 hold the other four.
struct ScaleMin {
  int scale;
  int min;
};
ScaleMin scale_min(const Byte* s, int group) {
  if (group < 4) return {s[group] & 63, s[group + 4] & 63};
  return {(s[group + 4] & 15) | (s[group - 4] >> 6) << 4, (s[group + 4] >> 4) | (s[group] >> 6) << 4};
}

/// f16 d, f16 dmin, 12 bytes of scales and mins, 128 bytes of nibbles.
void q4_k(const Byte* b, float* y) {
  const float d = half_at(b);
  const float dmin = half_at(b + 2);
  for (int group = 0; group < 8; ++group) {
    const ScaleMin s = scale_min(b + 4, group);
    const float scale = d * static_cast<float>(s.scale);
    const float min = dmin * static_cast<float>(s.min);
    const Byte* q = b + 16 + group / 2 * 32;
    const int shift = group % 2 * 4;
    for (int j = 0; j < 32; ++j) y[group * 32 + j] = scale * static_cast<float>((q[j] >> shift) & 15) - min;
  }
}

/// f16 d, f16 dmin, 12 bytes of scales and mins, 32 bytes of fifth bits, 128 bytes of nibbles.
void q5_k(const Byte* b, float* y) {
  const float d = half_at(b);
  const float dmin = half_at(b + 2);
  const Byte* high = b + 16;
  for (int group = 0; group < 8; ++group) {
    const ScaleMin s = scale_min(b + 4, group);
    const float scale = d * static_cast<float>(s.scale);
    const float min = dmin * static_cast<float>(s.min);
    const Byte* q = b + 48 + group / 2 * 32;
    const int shift = group % 2 * 4;
    for (int j = 0; j < 32; ++j) {
      const int value = ((q[j] >> shift) & 15) | ((high[j] >> group) & 1) << 4;
      y[group * 32 + j] = scale * static_cast<float>(value) - min;
    }
  }
}

/// 128 bytes of nibbles, 64 bytes of the upper two bits, 16 signed scales for groups of 16, f16 d; q - 32.
void q6_k(const Byte* b, float* y) {
  const Byte* low = b;
  const Byte* high = b + 128;
  const Byte* scales = b + 192;
  const float d = half_at(b + 208);
  for (int group = 0; group < 16; ++group) {
    const float scale = d * static_cast<float>(static_cast<int8_t>(scales[group]));
    const int half = group / 8;
    const int plane = group % 8;  // 16 elements each
    const Byte* q = low + half * 64 + plane % 4 * 16;
    const Byte* h = high + half * 32 + plane % 2 * 16;
    const int low_shift = plane / 4 * 4;
    const int high_shift = plane / 2 * 2;
    for (int j = 0; j < 16; ++j) {
      const int value = ((q[j] >> low_shift) & 15) | ((h[j] >> high_shift) & 3) << 4;
      y[group * 16 + j] = scale * static_cast<float>(value - 32);
    }
  }
}

template <void (*Decode)(const Byte*, float*)>
void decode(Encoding encoding, const Byte* src, float* dst, size_t blocks) {
  const size_t bytes = block_bytes(encoding);
  const size_t elements = block_elements(encoding);
  for (size_t i = 0; i < blocks; ++i) Decode(src + i * bytes, dst + i * elements);
}

}  // namespace

void decode_blocks(Encoding encoding, const std::byte* source, float* dst, size_t blocks) {
  const auto* src = reinterpret_cast<const Byte*>(source);
  switch (encoding) {
    case Encoding::kDense:
      return;
    case Encoding::kQ4_0:
      return decode<q4_0>(encoding, src, dst, blocks);
    case Encoding::kQ4_1:
      return decode<q4_1>(encoding, src, dst, blocks);
    case Encoding::kQ5_0:
      return decode<q5_0>(encoding, src, dst, blocks);
    case Encoding::kQ5_1:
      return decode<q5_1>(encoding, src, dst, blocks);
    case Encoding::kQ8_0:
      return decode<q8_0>(encoding, src, dst, blocks);
    case Encoding::kQ2_K:
      return decode<q2_k>(encoding, src, dst, blocks);
    case Encoding::kQ3_K:
      return decode<q3_k>(encoding, src, dst, blocks);
    case Encoding::kQ4_K:
      return decode<q4_k>(encoding, src, dst, blocks);
    case Encoding::kQ5_K:
      return decode<q5_k>(encoding, src, dst, blocks);
    case Encoding::kQ6_K:
      return decode<q6_k>(encoding, src, dst, blocks);
  }
}

}  // namespace decant
