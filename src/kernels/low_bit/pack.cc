#include <cstring>
#include <vector>

#include "base/half.h"
#include "kernels/low_bit.h"
#include "kernels/parallel.h"

namespace decant::kernels {
namespace {

constexpr int64_t kRows = 16;

void put_number(bool half, std::byte* to, int64_t i, float v) {
  if (half) {
    const uint16_t bits = float_to_f16(v);
    std::memcpy(to + 2 * i, &bits, 2);
  } else {
    std::memcpy(to + 4 * i, &v, 4);
  }
}

float get_number(bool half, const std::byte* from, int64_t i) {
  if (half) {
    uint16_t bits;
    std::memcpy(&bits, from + 2 * i, 2);
    return f16_to_float(bits);
  }
  float v;
  std::memcpy(&v, from + 4 * i, 4);
  return v;
}

uint32_t four_codes(const uint8_t* codes) {
  uint32_t v;
  std::memcpy(&v, codes, 4);
  return v;
}

/// What one worker reads a group into: codes have room up to whole steps, filled with zeros.
struct GroupBuffer {
  std::vector<uint8_t> codes;
  std::vector<float> scales, zeros;
};

void pack_group(const LowBitRows& source, const LowBitMatrix& m, int64_t group, GroupBuffer& b,
                std::byte* out) {
  const LowBitForm& form = m.form;
  const int64_t first = group * kRows, rows = std::min(kRows, form.rows - first);
  const int64_t k = form.columns, steps = m.steps(), stored_blocks = form.blocks();
  source.read(first, rows, b.codes.data(), b.scales.data(), b.zeros.data());
  std::memset(out, 0, static_cast<size_t>(m.codes_at()));
  std::byte* const zeros = out + m.zeros_at();
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < stored_blocks; ++i) {
      put_number(form.half_scales, out, i * kRows + r, b.scales[static_cast<size_t>(r * stored_blocks + i)]);
      const float zero = b.zeros[static_cast<size_t>(r * stored_blocks + i)];
      if (form.zero == LowBitForm::Zero::kCodes)
        zeros[i * kRows + r] = static_cast<std::byte>(static_cast<uint8_t>(zero));
      if (form.zero == LowBitForm::Zero::kMinimum) put_number(form.half_scales, zeros, i * kRows + r, zero);
    }
  }
  auto* to = reinterpret_cast<uint32_t*>(out + m.codes_at());
  const int64_t whole = k / 32;
  uint8_t last[kRows][32];
  for (int64_t r = 0; r < kRows; ++r) {
    std::memset(last[r], 0, sizeof last[r]);
    if (r < rows)
      std::memcpy(last[r], b.codes.data() + r * k + whole * 32, static_cast<size_t>(k - whole * 32));
  }
  for (int64_t step = 0; step < steps; ++step, to += form.bits == 4 ? 64 : 128) {
    for (int64_t r = 0; r < kRows; ++r) {
      const uint8_t* const q = step == whole || r >= rows ? last[r] : b.codes.data() + r * k + step * 32;
      if (form.bits == 4) {
        for (int64_t j = 0; j < 4; ++j)
          to[j * kRows + r] = four_codes(q + 4 * j) | four_codes(q + 16 + 4 * j) << 4;
      } else {
        for (int64_t j = 0; j < 8; ++j) to[j * kRows + r] = four_codes(q + 4 * j);
      }
    }
    // Rows past the last have the codes of a partial step, times scales of 0.
  }
}

}  // namespace

void pack_low_bit(ThreadPool& pool, const LowBitRows& rows, const LowBitMatrix& matrix, std::byte* data) {
  const auto size = static_cast<size_t>(pool.size());
  std::vector<GroupBuffer> buffers(size);
  const auto work = [&](int worker, int64_t begin, int64_t end) {
    GroupBuffer& b = buffers[static_cast<size_t>(worker)];
    const auto blocks = static_cast<size_t>(kRows * matrix.form.blocks());
    b.codes.resize(static_cast<size_t>(kRows * matrix.form.columns));
    b.scales.resize(blocks);
    b.zeros.resize(blocks);
    for (int64_t group = begin; group < end; ++group)
      pack_group(rows, matrix, group, b, data + group * matrix.group_bytes());
  };
  pool.parallel_for(matrix.groups(), work);
}

void decode_low_bit(const LowBitMatrix& m, int64_t group, int64_t first, int64_t count, float* out,
                    int64_t stride) {
  const LowBitForm& form = m.form;
  const std::byte* const base = m.data + group * m.group_bytes();
  const std::byte* const zeros = base + m.zeros_at();
  const bool four = form.bits == 4;
  const int32_t mask = four ? 15 : 255;
  float scale[kRows], zero[kRows], minimum[kRows];
  int64_t known = -1;
  // Four k at a time: a word of each row.
  for (int64_t x = first / 4 * 4; x < first + count; x += 4) {
    const int64_t step = x / 32, in = x % 32;
    const int64_t block = m.halves() ? 2 * step + in / 16 : step / m.block_steps();
    for (int64_t r = 0; block != known && r < kRows; ++r) {
      const int64_t i = block * kRows + r;
      scale[r] = get_number(form.half_scales, base, i);
      zero[r] = four ? 8.0f : 128.0f;
      minimum[r] = 0.0f;
      if (form.zero == LowBitForm::Zero::kCodes)
        zero[r] = static_cast<float>(std::to_integer<uint8_t>(zeros[i]));
      if (form.zero == LowBitForm::Zero::kMinimum) {
        zero[r] = 0.0f;
        minimum[r] = get_number(form.half_scales, zeros, i);
      }
    }
    known = block;
    const int64_t vector = (four ? in % 16 : in) / 4;
    int32_t words[kRows];
    std::memcpy(words, base + m.codes_at() + step * (four ? 256 : 512) + vector * 64, sizeof words);
    for (int64_t i = 0; i < 4; ++i) {
      if (x + i < first || x + i >= first + count) continue;
      const int shift = static_cast<int>(8 * i) + (four && in >= 16 ? 4 : 0);
      float* const row = out + (x + i - first) * stride;
      for (int64_t r = 0; r < kRows; ++r)
        row[r] = (static_cast<float>((words[r] >> shift) & mask) - zero[r]) * scale[r] + minimum[r];
    }
  }
}

}  // namespace decant::kernels
