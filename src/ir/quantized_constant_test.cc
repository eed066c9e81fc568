#include "ir/quantized_constant.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "base/block_formats.h"
#include "base/half.h"
#include "base/mapped_file.h"
#include "ir/packed_constant.h"
#include "ir/row_blocks.h"

namespace decant::ir {
namespace {

ConstantPtr random_matrix(int64_t rows, int64_t columns, unsigned seed, DType dtype = DType::kFloat32) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.1f, 1);
  Tensor t = *Tensor::allocate(DType::kFloat32, {rows, columns});
  for (int64_t i = 0; i < t.elements(); ++i) t.mutable_data_as<float>()[i] = normal(random);
  return cast_constant(Constant::from_tensor(t), dtype);
}

std::vector<std::byte> bytes_of(const Constant& c) {
  std::vector<std::byte> out(c.bytes());
  const Status read = c.read_rows(0, c.rows(), out);
  EXPECT_TRUE(read.ok()) << read.to_string();
  return out;
}

std::vector<double> values_of(const Constant& c) {
  const Tensor t = *c.materialize();
  std::vector<double> out;
  for (int64_t i = 0; i < t.elements(); ++i) out.push_back(t.double_at(i));
  return out;
}

/// The elements that a form stands for, [rows, columns] with the padding left out.
std::vector<double> decoded(const RowBlocks& b, int64_t columns) {
  const std::vector<std::byte> codes = bytes_of(*b.codes), scales = bytes_of(*b.scales),
                               zeros = b.zeros ? bytes_of(*b.zeros) : std::vector<std::byte>();
  PackedLayout l;
  l.rows = b.codes->rows();
  l.columns = columns;
  l.bits = b.bits;
  l.block_columns = b.block;
  l.row_bits = b.codes->dims()[1] * b.codes->dims()[2] * 8;
  l.scale_dtype = l.zero_dtype = b.scales->dtype();
  l.zero = !b.zeros           ? PackedLayout::Zero::kOne
           : b.zero_numbers() ? PackedLayout::Zero::kNumbers
                              : PackedLayout::Zero::kCodes;
  l.zero_point = 1 << (b.bits - 1);
  l.zero_row_bits = b.zeros ? b.zeros->dims()[1] * 8 : 0;
  const PackedBytes packed{codes, scales, zeros, {}};
  EXPECT_TRUE(check_packed(l, packed).ok());
  std::vector<float> out(static_cast<size_t>(l.rows * columns));
  decode_packed(l, packed, 0, l.rows * columns, out.data());
  return {out.begin(), out.end()};
}

TEST(QuantizedConstant, IsWhatItsCodesSay) {
  for (const int64_t block : {16, 32, 64, 128, 256}) {
    for (const int64_t columns : {1, 31, 72, 256, 300}) {
      for (const int bits : {4, 8}) {
        for (const bool zeros : {false, true}) {
          const ConstantPtr matrix = random_matrix(5, columns, 1, zeros ? DType::kFloat16 : DType::kFloat32);
          const Quantization how{bits, block, zeros, zeros ? DType::kFloat16 : DType::kFloat32};
          const QuantizedConstant q = quantized_constant(matrix, how, "w", nullptr);
          ASSERT_EQ(q.constant->dims(), matrix->dims());
          const auto blocks = row_blocks(q.constant, how.scale_dtype);
          ASSERT_TRUE(blocks.has_value());
          EXPECT_EQ(blocks->bits, bits);
          EXPECT_EQ(blocks->block, block);
          EXPECT_EQ(blocks->zeros != nullptr, zeros);
          const std::vector<double> wanted = decoded(*blocks, columns), got = values_of(*q.constant),
                                    exact = values_of(*matrix);
          double error = 0, signal = 0;
          for (size_t i = 0; i < wanted.size(); ++i) {
            EXPECT_NEAR(got[i], wanted[i], zeros ? 1e-3 * std::fabs(wanted[i]) : 0);
            error += (wanted[i] - exact[i]) * (wanted[i] - exact[i]);
            signal += exact[i] * exact[i];
          }
          EXPECT_LT(error, (bits == 4 ? 0.02 : 1e-4) * signal);
          EXPECT_NEAR(error_of(*q.matrix).error, error, 1e-3 * error + 1e-12);
          EXPECT_NEAR(error_of(*q.matrix).relative(), std::sqrt(error / signal), 1e-3);
          EXPECT_EQ(static_cast<size_t>(how.bytes(5, columns)),
                    blocks->codes->bytes() + blocks->scales->bytes() + (zeros ? blocks->zeros->bytes() : 0));
        }
      }
    }
  }
}

TEST(QuantizedConstant, ThreadsAndOrderChangeNothing) {
  const ConstantPtr matrix = random_matrix(301, 96, 2);
  const Quantization how{4, 32, true};
  const auto one = row_blocks(quantized_constant(matrix, how, "w", nullptr).constant, DType::kFloat32);
  const auto three = row_blocks(
      quantized_constant(matrix, how, "w", std::make_shared<SharedPool>(3)).constant, DType::kFloat32);
  const std::vector<std::byte> zeros = bytes_of(*one->zeros), scales = bytes_of(*one->scales),
                               codes = bytes_of(*one->codes);
  EXPECT_EQ(bytes_of(*three->codes), codes);
  EXPECT_EQ(bytes_of(*three->scales), scales);
  EXPECT_EQ(bytes_of(*three->scales), scales);  // again, after what was kept is gone
  EXPECT_EQ(bytes_of(*three->zeros), zeros);
  std::vector<std::byte> part(static_cast<size_t>(3 * 48));
  ASSERT_TRUE(three->codes->read_rows(100, 103, part).ok());
  EXPECT_TRUE(std::equal(part.begin(), part.end(), codes.begin() + 100 * 48));
}

TEST(QuantizedConstant, AcrossIsTheSame) {
  const ConstantPtr matrix = random_matrix(7, 64, 3), across = transpose_constant(matrix);
  EXPECT_EQ(transpose_constant(across), matrix);
  const QuantizedConstant q = quantized_constant(matrix, {}, "w", nullptr);
  EXPECT_TRUE(row_blocks(transpose_constant(transpose_constant(q.constant)), DType::kFloat32).has_value());
}

TEST(QuantizedConstant, NamesWhatCannotBeRounded) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const float bad : {std::nanf(""), inf, -inf, 1e9f}) {
    Tensor t = *random_matrix(4, 64, 4)->materialize();
    t.mutable_data_as<float>()[64 * 2 + 40] = bad;
    const QuantizedConstant q = quantized_constant(
        Constant::from_tensor(t), {.scale_dtype = std::isfinite(bad) ? DType::kFloat16 : DType::kFloat32},
        "layers.3.weight", nullptr);
    const Status read = q.constant->materialize().status();
    EXPECT_EQ(read.code(), StatusCode::kInvalidModel);
    EXPECT_NE(read.message().find("layers.3.weight: the weight in row 2, column"), std::string::npos)
        << read.message();
    EXPECT_FALSE(
        sample_quantization(*Constant::from_tensor(t), {.scale_dtype = DType::kFloat16}, "w", 4).ok());
  }
}

/// A matrix in GGUF blocks.
class BlockRows : public RowSource {
 public:
  BlockRows(Encoding encoding, std::span<const std::byte> bytes, int64_t rows, int64_t columns)
      : encoding_(encoding), bytes_(bytes), columns_(columns) {
    packed_.rows = [=](bool across) -> std::unique_ptr<LowBitRows> {
      return across ? nullptr : low_bit_rows(encoding, bytes, rows, columns, nullptr);
    };
  }
  Status read_rows(int64_t begin, int64_t end, std::span<std::byte> out) const override {
    const size_t blocks = static_cast<size_t>(columns_) / block_elements(encoding_);
    decode_blocks(encoding_, bytes_.data() + static_cast<size_t>(begin) * blocks * block_bytes(encoding_),
                  reinterpret_cast<float*>(out.data()), static_cast<size_t>(end - begin) * blocks);
    return ok_status();
  }
  const PackedConstant* packed() const override { return &packed_; }

 private:
  Encoding encoding_;
  std::span<const std::byte> bytes_;
  int64_t columns_;
  PackedConstant packed_;
};

TEST(RowBlocks, GgufBlocksKeepTheirValues) {
  const auto file = MappedFile::open(DECANT_SOURCE_DIR "/testdata/gguf/blocks.bin");
  ASSERT_TRUE(file.ok()) << file.status().to_string();
  std::span<const std::byte> rest = (*file)->bytes();
  for (const char* name : {"Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"}) {
    const Encoding encoding = *encoding_from_string(name);
    uint32_t blocks = 0;
    std::memcpy(&blocks, rest.data(), 4);
    const size_t elements = blocks * block_elements(encoding), bytes = blocks * block_bytes(encoding);
    const auto rows = static_cast<int64_t>(blocks);
    const auto columns = static_cast<int64_t>(block_elements(encoding));
    const ConstantPtr matrix =
        Constant::from_rows(DType::kFloat32, {rows, columns},
                            std::make_shared<BlockRows>(encoding, rest.subspan(4, bytes), rows, columns));
    rest = rest.subspan(4 + bytes + elements * 4);
    const std::string_view id = name;
    const auto form = row_blocks(matrix, DType::kFloat32);
    if (id == "Q5_1" || id == "Q5_K") {
      EXPECT_FALSE(form.has_value()) << name;
      continue;
    }
    ASSERT_TRUE(form.has_value()) << name;
    const bool minima = id == "Q4_1" || id == "Q2_K" || id == "Q4_K";
    EXPECT_EQ(form->zero_numbers(), minima) << name;
    const std::vector<double> wanted = values_of(*matrix), got = decoded(*form, columns);
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (!std::isfinite(wanted[i])) continue;
      // A minimum is rounded once more, to a number of steps.
      double largest = 0;
      for (size_t k = i / 32 * 32; k < i / 32 * 32 + 32; ++k)
        largest = std::max(largest, std::fabs(wanted[k]));
      ASSERT_NEAR(got[i], wanted[i], minima ? 1e-5 * largest : 0) << name << ' ' << i;
    }
  }
}

TEST(RowBlocks, TheWayRoundAndOtherBlocks) {
  // int8 codes per column, as DequantizeLinear stores them: one scale a row of the product.
  const int64_t k = 96, n = 6;
  Tensor codes = *Tensor::allocate(DType::kInt8, {k, n}), scales = *Tensor::allocate(DType::kFloat32, {n});
  for (int64_t i = 0; i < k * n; ++i)
    codes.mutable_data_as<int8_t>()[i] = static_cast<int8_t>(i * 37 % 251 - 125);
  for (int64_t i = 0; i < n; ++i) scales.mutable_data_as<float>()[i] = 0.01f * static_cast<float>(i + 1);
  PackedConstant packed;
  packed.layout.rows = k;
  packed.layout.columns = n;
  packed.layout.bits = 8;
  packed.layout.is_signed = true;
  packed.layout.row_bits = n * 8;
  packed.layout.block_rows = k;
  packed.codes = Constant::from_tensor(codes);
  packed.scales = Constant::from_tensor(scales);
  const ConstantPtr matrix = *packed_constant(DType::kFloat32, {k, n}, packed);
  const auto form = row_blocks(transpose_constant(matrix), DType::kFloat32);
  ASSERT_TRUE(form.has_value());
  EXPECT_EQ(form->block, 32);
  EXPECT_EQ(decoded(*form, k), values_of(*transpose_constant(matrix)));
  EXPECT_FALSE(row_blocks(random_matrix(4, 64, 5), DType::kFloat32).has_value());
}

}  // namespace
}  // namespace decant::ir
