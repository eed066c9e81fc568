#include "base/block_formats.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "base/mapped_file.h"

namespace decant {
namespace {

// testdata/gguf/make_block_goldens.py wrote what the gguf package decodes.
TEST(BlockFormats, EqualsGgufPackageBitForBit) {
  const auto file = MappedFile::open(DECANT_SOURCE_DIR "/testdata/gguf/blocks.bin");
  ASSERT_TRUE(file.ok()) << file.status().to_string();
  std::span<const std::byte> rest = (*file)->bytes();
  for (const char* name : {"Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"}) {
    const auto encoding = encoding_from_string(name);
    ASSERT_TRUE(encoding.has_value());
    uint32_t blocks = 0;
    ASSERT_GE(rest.size(), 4u);
    std::memcpy(&blocks, rest.data(), 4);
    rest = rest.subspan(4);
    const size_t elements = blocks * block_elements(*encoding);
    const size_t bytes = encoded_bytes(*encoding, DType::kFloat32, elements);
    ASSERT_EQ(bytes, blocks * block_bytes(*encoding));
    ASSERT_GE(rest.size(), bytes + elements * 4);
    std::vector<float> decoded(elements);
    decode_blocks(*encoding, rest.data(), decoded.data(), blocks);
    EXPECT_EQ(std::memcmp(decoded.data(), rest.data() + bytes, elements * 4), 0) << name;
    rest = rest.subspan(bytes + elements * 4);
  }
  EXPECT_TRUE(rest.empty());
}

TEST(Encoding, NamesAndSizes) {
  for (int i = 0; i <= static_cast<int>(Encoding::kQ6_K); ++i) {
    const auto encoding = static_cast<Encoding>(i);
    EXPECT_EQ(encoding_from_string(to_string(encoding)), encoding);
  }
  EXPECT_FALSE(encoding_from_string("Q9_9").has_value());
  EXPECT_EQ(encoded_bytes(Encoding::kDense, DType::kBFloat16, 10), 20u);
  EXPECT_EQ(encoded_bytes(Encoding::kQ4_0, DType::kFloat32, 64), 36u);
  EXPECT_EQ(encoded_bytes(Encoding::kQ4_0, DType::kFloat32, 65), 54u);
  EXPECT_EQ(encoded_bytes(Encoding::kQ6_K, DType::kFloat32, 0), 0u);
}

}  // namespace
}  // namespace decant
