#include "base/packed.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace decant {
namespace {

std::vector<std::byte> bytes_of_floats(const std::vector<float>& v) {
  std::vector<std::byte> out(v.size() * 4);
  std::memcpy(out.data(), v.data(), out.size());
  return out;
}

/// Codes as one stream of bits, low bits first.
std::vector<std::byte> stream(const std::vector<int>& codes, int bits) {
  std::vector<std::byte> out((codes.size() * static_cast<size_t>(bits) + 7) / 8);
  for (size_t i = 0; i < codes.size(); ++i) {
    for (int b = 0; b < bits; ++b) {
      const size_t at = i * static_cast<size_t>(bits) + static_cast<size_t>(b);
      if ((codes[i] >> b) & 1) out[at / 8] |= std::byte{1} << (at % 8);
    }
  }
  return out;
}

class PackedBits : public testing::TestWithParam<int> {};

TEST_P(PackedBits, BlocksAlongBothAxes) {
  const int bits = GetParam();
  constexpr int64_t kRows = 6, kColumns = 40;
  std::mt19937 random(static_cast<unsigned>(bits));
  std::vector<int> codes(kRows * kColumns);
  for (int& c : codes) c = static_cast<int>(random() % (1u << bits));
  for (const bool is_signed : {false, true}) {
    for (const auto& [block_rows, block_columns] :
         {std::pair<int64_t, int64_t>{1, 16}, {4, 1}, {kRows, kColumns}}) {
      PackedLayout l;
      l.rows = kRows;
      l.columns = kColumns;
      l.bits = bits;
      l.row_bits = kColumns * bits;
      l.is_signed = is_signed;
      l.block_rows = block_rows;
      l.block_columns = block_columns;
      l.zero = PackedLayout::Zero::kCodes;
      l.zero_row_bits = l.scale_columns() * bits;
      const auto blocks = static_cast<size_t>(l.scale_rows() * l.scale_columns());
      std::vector<float> scales(blocks);
      std::vector<int> zeros(blocks);
      for (size_t i = 0; i < blocks; ++i) {
        scales[i] = static_cast<float>(random() % 100) / 50.0f - 1.0f;
        zeros[i] = static_cast<int>(random() % (1u << bits));
      }
      const auto code_bytes = stream(codes, bits), scale_bytes = bytes_of_floats(scales),
                 zero_bytes = stream(zeros, bits);
      const PackedBytes bytes{code_bytes, scale_bytes, zero_bytes, {}};
      ASSERT_TRUE(check_packed(l, bytes).ok());
      const auto number = [&](int code) {
        return is_signed && code >= 1 << (bits - 1) ? code - (1 << bits) : code;
      };
      std::vector<float> want;
      for (int64_t r = 0; r < kRows; ++r) {
        for (int64_t c = 0; c < kColumns; ++c) {
          const auto block = static_cast<size_t>(r / block_rows * l.scale_columns() + c / block_columns);
          want.push_back(static_cast<float>(number(codes[static_cast<size_t>(r * kColumns + c)]) -
                                            number(zeros[block])) *
                         scales[block]);
        }
      }
      std::vector<float> got(want.size());
      decode_packed(l, bytes, 0, kRows * kColumns, got.data());
      EXPECT_EQ(got, want);
      std::vector<float> part(70);
      decode_packed(l, bytes, 33, 70, part.data());
      EXPECT_EQ(part, std::vector<float>(want.begin() + 33, want.begin() + 103));
    }
  }
}
INSTANTIATE_TEST_SUITE_P(, PackedBits, testing::Range(1, 9));

TEST(Packed, TablesAndHighHalfFirst) {
  PackedLayout l;
  l.rows = 1;
  l.columns = 3;
  l.high_first = true;
  l.block_columns = 2;
  l.table = nf4_table();
  const std::vector<std::byte> codes = {std::byte{0xf0}, std::byte{0x70}};
  const auto scales = bytes_of_floats({2.0f, 3.0f});
  std::vector<float> got(3);
  ASSERT_TRUE(check_packed(l, {codes, scales, {}, {}}).ok());
  decode_packed(l, {codes, scales, {}, {}}, 0, 3, got.data());
  EXPECT_EQ(got, (std::vector<float>{2.0f, -2.0f, 0.0f}));
}

TEST(Packed, RefusesWhatDoesNotFit) {
  PackedLayout l;
  l.rows = 4;
  l.columns = 32;
  l.row_bits = 128;
  l.block_columns = 16;
  const std::vector<std::byte> codes(64), scales(32), groups(128, std::byte{0x7f});
  EXPECT_TRUE(check_packed(l, {codes, scales, {}, {}}).ok());
  EXPECT_FALSE(check_packed(l, {std::span(codes).first(63), scales, {}, {}}).ok());
  EXPECT_FALSE(check_packed(l, {codes, std::span(scales).first(31), {}, {}}).ok());
  EXPECT_FALSE(check_packed(l, {codes, scales, {}, groups}).ok());
  l.zero = PackedLayout::Zero::kNumbers;
  EXPECT_FALSE(check_packed(l, {codes, scales, {}, {}}).ok());
  l.zero = PackedLayout::Zero::kOne;
  l.row_bits = 127;
  EXPECT_FALSE(check_packed(l, {codes, scales, {}, {}}).ok());
  l.row_bits = 128;
  l.rows = INT64_MAX / 2;
  EXPECT_FALSE(check_packed(l, {codes, scales, {}, {}}).ok());
  l.rows = 4;
  l.block_columns = 0;
  EXPECT_FALSE(check_packed(l, {codes, scales, {}, {}}).ok());
  l.block_columns = 16;
  l.bits = 9;
  EXPECT_FALSE(check_packed(l, {codes, scales, {}, {}}).ok());
}

}  // namespace
}  // namespace decant
