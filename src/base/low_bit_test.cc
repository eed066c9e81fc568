#include "base/low_bit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "base/block_formats.h"

namespace decant {
namespace {

class LowBitBlocks : public testing::TestWithParam<Encoding> {};

// Codes, scales and zeros give the very numbers that the blocks decode to, from rows in another order.
TEST_P(LowBitBlocks, GiveTheDecodedValues) {
  const Encoding encoding = GetParam();
  const auto elements = static_cast<int64_t>(block_elements(encoding));
  const int64_t rows = 5, columns = 3 * elements;
  const size_t row_bytes = 3 * block_bytes(encoding);
  std::mt19937 random(7);
  std::vector<std::byte> bytes(static_cast<size_t>(rows) * row_bytes);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  const auto reader =
      low_bit_rows(encoding, bytes, rows, columns, [](int64_t row) { return (row + 2) % rows; });
  ASSERT_TRUE(reader);
  const LowBitForm& form = reader->form();
  EXPECT_EQ(form.rows, rows);
  EXPECT_EQ(form.columns, columns);
  const int64_t blocks = form.blocks();
  std::vector<uint8_t> codes(static_cast<size_t>(rows * columns));
  std::vector<float> scales(static_cast<size_t>(rows * blocks)), zeros(scales.size()),
      want(static_cast<size_t>(columns));
  reader->read(0, rows, codes.data(), scales.data(), zeros.data());
  for (int64_t r = 0; r < rows; ++r) {
    decode_blocks(encoding, bytes.data() + static_cast<size_t>((r + 2) % rows) * row_bytes, want.data(), 3);
    for (int64_t c = 0; c < columns; ++c) {
      const auto code = static_cast<float>(codes[static_cast<size_t>(r * columns + c)]);
      const auto at = static_cast<size_t>(r * blocks + c / form.block);
      const float got = form.zero == LowBitForm::Zero::kMinimum
                            ? code * scales[at] + zeros[at]
                            : (code - static_cast<float>(1 << (form.bits - 1))) * scales[at];
      if (std::isnan(want[static_cast<size_t>(c)]) && std::isnan(got)) continue;
      ASSERT_EQ(got, want[static_cast<size_t>(c)]) << r << ", " << c;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, LowBitBlocks,
                         testing::Values(Encoding::kQ4_0, Encoding::kQ4_1, Encoding::kQ5_0, Encoding::kQ5_1,
                                         Encoding::kQ8_0, Encoding::kQ2_K, Encoding::kQ3_K, Encoding::kQ4_K,
                                         Encoding::kQ5_K, Encoding::kQ6_K),
                         [](const auto& of) { return std::string(to_string(of.param)); });

TEST(LowBitRows, LeavesOutWhatHasNoForm) {
  PackedLayout l;
  l.rows = 4;
  l.columns = 64;
  l.row_bits = 256;
  l.block_columns = 32;
  l.zero_point = 8;
  std::vector<std::byte> codes(128), scales(4 * 2 * 4), groups(64 * 4);
  ASSERT_TRUE(check_packed(l, {codes, scales, {}, {}}).ok());
  EXPECT_TRUE(low_bit_rows(l, {codes, scales, {}, {}}, false));
  EXPECT_FALSE(low_bit_rows(l, {codes, scales, {}, groups}, false));  // columns in activation order
  EXPECT_FALSE(low_bit_rows(l, {codes, scales, {}, {}}, true));       // a scale for each row of k
  l.table = nf4_table();
  EXPECT_FALSE(low_bit_rows(l, {codes, scales, {}, {}}, false));
}

}  // namespace
}  // namespace decant
