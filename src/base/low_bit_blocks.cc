#include <bit>
#include <cstring>

#include "base/half.h"
#include "base/low_bit.h"

// The codes of GGUF's block encodings; block_formats.cc has their layouts.
namespace decant {
namespace {

using Byte = unsigned char;

float half_at(const Byte* p) {
  uint16_t bits;
  std::memcpy(&bits, p, 2);
  return f16_to_float(bits);
}

uint32_t fifth_bit(const Byte* high, int j) { return (uint32_t{high[j / 8]} >> (j % 8) & 1u) << 4; }

/// One block of an encoding as codes, scales and zeros. kBlock elements share a scale.
struct Q4_0 {
  static constexpr int kBits = 4, kBlock = 32;
  static constexpr auto kZero = LowBitForm::Zero::kCenter;
  static constexpr bool kHalf = true;
  static void read(const Byte* b, uint8_t* q, float* scale, float*) {
    *scale = half_at(b);
    for (int j = 0; j < 16; ++j) {
      q[j] = b[2 + j] & 15;
      q[j + 16] = b[2 + j] >> 4;
    }
  }
};

struct Q4_1 {
  static constexpr int kBits = 4, kBlock = 32;
  static constexpr auto kZero = LowBitForm::Zero::kMinimum;
  static constexpr bool kHalf = true;
  static void read(const Byte* b, uint8_t* q, float* scale, float* zero) {
    *scale = half_at(b);
    *zero = half_at(b + 2);
    for (int j = 0; j < 16; ++j) {
      q[j] = b[4 + j] & 15;
      q[j + 16] = b[4 + j] >> 4;
    }
  }
};

struct Q5_0 {
  static constexpr int kBits = 8, kBlock = 32;
  static constexpr auto kZero = LowBitForm::Zero::kCenter;
  static constexpr bool kHalf = true;
  static void read(const Byte* b, uint8_t* q, float* scale, float*) {
    *scale = half_at(b);
    for (int j = 0; j < 16; ++j) {
      q[j] = static_cast<uint8_t>(((b[6 + j] & 15u) | fifth_bit(b + 2, j)) + 112);
      q[j + 16] = static_cast<uint8_t>((uint32_t{b[6 + j]} >> 4 | fifth_bit(b + 2, j + 16)) + 112);
    }
  }
};

struct Q5_1 {
  static constexpr int kBits = 8, kBlock = 32;
  static constexpr auto kZero = LowBitForm::Zero::kMinimum;
  static constexpr bool kHalf = true;
  static void read(const Byte* b, uint8_t* q, float* scale, float* zero) {
    *scale = half_at(b);
    *zero = half_at(b + 2);
    for (int j = 0; j < 16; ++j) {
      q[j] = static_cast<uint8_t>((b[8 + j] & 15u) | fifth_bit(b + 4, j));
      q[j + 16] = static_cast<uint8_t>(uint32_t{b[8 + j]} >> 4 | fifth_bit(b + 4, j + 16));
    }
  }
};

struct Q8_0 {
  static constexpr int kBits = 8, kBlock = 32;
  static constexpr auto kZero = LowBitForm::Zero::kCenter;
  static constexpr bool kHalf = true;
  static void read(const Byte* b, uint8_t* q, float* scale, float*) {
    *scale = half_at(b);
    for (int j = 0; j < 32; ++j) q[j] = b[2 + j] ^ 0x80;
  }
};

struct Q2_K {
  static constexpr int kBits = 4, kBlock = 16;
  static constexpr auto kZero = LowBitForm::Zero::kMinimum;
  static constexpr bool kHalf = false;
  static void read(const Byte* b, uint8_t* q, float* scale, float* zero) {
    const float d = half_at(b + 80), dmin = half_at(b + 82);
    for (int group = 0; group < 16; ++group) {
      scale[group] = d * static_cast<float>(b[group] & 15);
      zero[group] = -(dmin * static_cast<float>(b[group] >> 4));
      const Byte* const plane = b + 16 + (group / 8) * 32 + (group % 2) * 16;
      const int shift = (group / 2) % 4 * 2;
      for (int j = 0; j < 16; ++j) q[group * 16 + j] = (plane[j] >> shift) & 3;
    }
  }
};

struct Q3_K {
  static constexpr int kBits = 4, kBlock = 16;
  static constexpr auto kZero = LowBitForm::Zero::kCenter;
  static constexpr bool kHalf = false;
  static void read(const Byte* b, uint8_t* q, float* scale, float*) {
    const Byte* const scales = b + 96;
    const float d = half_at(b + 108);
    for (int group = 0; group < 16; ++group) {
      const int low = group < 8 ? scales[group] & 15 : scales[group - 8] >> 4;
      const int high = (scales[8 + group % 4] >> (group / 4 * 2)) & 3;
      scale[group] = d * static_cast<float>((low | high << 4) - 32);
      const Byte* const plane = b + 32 + (group / 8) * 32 + (group % 2) * 16;
      const Byte* const bits = b + (group % 2) * 16;
      const int shift = (group / 2) % 4 * 2, bit = group / 2;
      for (int j = 0; j < 16; ++j) {
        const int third = (bits[j] >> bit & 1) << 2;
        q[group * 16 + j] = static_cast<uint8_t>((((plane[j] >> shift) & 3) | third) + 4);
      }
    }
  }
};

void scale_min(const Byte* s, int group, int* scale, int* min) {
  if (group < 4) {
    *scale = s[group] & 63;
    *min = s[group + 4] & 63;
    return;
  }
  *scale = (s[group + 4] & 15) | (s[group - 4] >> 6) << 4;
  *min = (s[group + 4] >> 4) | (s[group] >> 6) << 4;
}

template <int Bits>
struct Q45_K {
  static constexpr int kBits = Bits == 4 ? 4 : 8, kBlock = 32;
  static constexpr auto kZero = LowBitForm::Zero::kMinimum;
  static constexpr bool kHalf = false;
  static void read(const Byte* b, uint8_t* q, float* scale, float* zero) {
    const float d = half_at(b), dmin = half_at(b + 2);
    const Byte* const high = b + 16;
    const Byte* const low = Bits == 4 ? b + 16 : b + 48;
    for (int group = 0; group < 8; ++group) {
      int s = 0, m = 0;
      scale_min(b + 4, group, &s, &m);
      scale[group] = d * static_cast<float>(s);
      zero[group] = -(dmin * static_cast<float>(m));
      const Byte* const nibbles = low + group / 2 * 32;
      const int shift = group % 2 * 4;
      for (int j = 0; j < 32; ++j) {
        const int fifth = Bits == 4 ? 0 : (high[j] >> group & 1) << 4;
        q[group * 32 + j] = static_cast<uint8_t>(((nibbles[j] >> shift) & 15) | fifth);
      }
    }
  }
};

struct Q6_K {
  static constexpr int kBits = 8, kBlock = 16;
  static constexpr auto kZero = LowBitForm::Zero::kCenter;
  static constexpr bool kHalf = false;
  static void read(const Byte* b, uint8_t* q, float* scale, float*) {
    const Byte* const scales = b + 192;
    const float d = half_at(b + 208);
    for (int group = 0; group < 16; ++group) {
      scale[group] = d * static_cast<float>(static_cast<int8_t>(scales[group]));
      const int half = group / 8, plane = group % 8;
      const Byte* const low = b + half * 64 + plane % 4 * 16;
      const Byte* const high = b + 128 + half * 32 + plane % 2 * 16;
      const int low_shift = plane / 4 * 4, high_shift = plane / 2 * 2;
      for (int j = 0; j < 16; ++j) {
        const int value = ((low[j] >> low_shift) & 15) | ((high[j] >> high_shift) & 3) << 4;
        q[group * 16 + j] = static_cast<uint8_t>(value + 96);
      }
    }
  }
};

template <typename Q>
class BlockRows final : public LowBitRows {
 public:
  BlockRows(Encoding encoding, std::span<const std::byte> bytes, int64_t rows, int64_t columns,
            std::function<int64_t(int64_t)> stored)
      : encoding_(encoding),
        bytes_(bytes),
        stored_(std::move(stored)),
        elements_(static_cast<int64_t>(block_elements(encoding))),
        block_bytes_(block_bytes(encoding)) {
    form_.rows = rows;
    form_.columns = columns;
    form_.bits = Q::kBits;
    form_.block = std::min<int64_t>(Q::kBlock, columns);
    form_.zero = Q::kZero;
    form_.half_scales = Q::kHalf;
  }

  void read(int64_t first, int64_t rows, uint8_t* codes, float* scales, float* zeros) const override {
    const int64_t blocks = form_.columns / elements_, groups = elements_ / Q::kBlock;
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t row = stored_ ? stored_(first + r) : first + r;
      const auto* from =
          reinterpret_cast<const Byte*>(bytes_.data()) + static_cast<size_t>(row * blocks) * block_bytes_;
      for (int64_t i = 0; i < blocks; ++i, from += block_bytes_) {
        const int64_t at = (r * blocks + i) * groups;
        Q::read(from, codes + (r * blocks + i) * elements_, scales + at,
                Q::kZero == LowBitForm::Zero::kCenter ? nullptr : zeros + at);
      }
    }
  }

  LowBitSource source() const override {
    return {std::bit_cast<uintptr_t>(bytes_.data()), static_cast<uint64_t>(form_.rows),
            static_cast<uint64_t>(form_.columns), static_cast<uint64_t>(encoding_)};
  }

 private:
  Encoding encoding_;
  std::span<const std::byte> bytes_;
  std::function<int64_t(int64_t)> stored_;
  int64_t elements_;
  size_t block_bytes_;
};

}  // namespace

std::unique_ptr<LowBitRows> low_bit_rows(Encoding encoding, std::span<const std::byte> bytes, int64_t rows,
                                         int64_t columns, std::function<int64_t(int64_t)> stored) {
  const auto make = [&]<typename Q>(Q) -> std::unique_ptr<LowBitRows> {
    return std::make_unique<BlockRows<Q>>(encoding, bytes, rows, columns, std::move(stored));
  };
  switch (encoding) {
    case Encoding::kDense:
      return nullptr;
    case Encoding::kQ4_0:
      return make(Q4_0());
    case Encoding::kQ4_1:
      return make(Q4_1());
    case Encoding::kQ5_0:
      return make(Q5_0());
    case Encoding::kQ5_1:
      return make(Q5_1());
    case Encoding::kQ8_0:
      return make(Q8_0());
    case Encoding::kQ2_K:
      return make(Q2_K());
    case Encoding::kQ3_K:
      return make(Q3_K());
    case Encoding::kQ4_K:
      return make(Q45_K<4>());
    case Encoding::kQ5_K:
      return make(Q45_K<5>());
    case Encoding::kQ6_K:
      return make(Q6_K());
  }
  return nullptr;
}

}  // namespace decant
