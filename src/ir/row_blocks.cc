#include "ir/row_blocks.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "base/half.h"
#include "ir/packed_constant.h"

namespace decant::ir {
namespace {

constexpr int64_t kMinBlock = 16, kMaxBlock = 256;
/// Rows that LowBitRows reads at once.
constexpr int64_t kRows = 16;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

bool is_block(int64_t n) {
  return n >= kMinBlock && n <= kMaxBlock && std::has_single_bit(static_cast<uint64_t>(n));
}

class ReshapedRows : public RowSource {
 public:
  explicit ReshapedRows(ConstantPtr base) : base_(std::move(base)) {}
  Status read_rows(int64_t begin, int64_t end, std::span<std::byte> out) const override {
    return base_->read_rows(begin, end, out);
  }

 private:
  ConstantPtr base_;
};

/// The same elements under other dims, with as many rows.
ConstantPtr reshaped(ConstantPtr constant, std::vector<int64_t> dims) {
  if (constant->in_memory()) return Constant::from_tensor(constant->tensor().reshaped(std::move(dims)));
  const DType dtype = constant->dtype();
  return Constant::from_rows(dtype, std::move(dims), std::make_shared<ReshapedRows>(std::move(constant)));
}

/// The constants of a layout that is in the form; nothing when it is not.
std::optional<RowBlocks> as_stored(const PackedConstant& packed, DType scale_dtype) {
  const PackedLayout& l = packed.layout;
  const int64_t blocks = l.scale_columns();
  if (packed.rows || l.table || packed.groups || l.high_first || l.is_signed || l.bits < 2)
    return std::nullopt;
  if (l.block_rows != 1 || !is_block(l.block_columns) || l.row_bits != blocks * l.block_columns * l.bits)
    return std::nullopt;
  RowBlocks out{l.bits, l.block_columns, nullptr, nullptr, nullptr};
  const int64_t zero_bytes = ceil_div(blocks * l.bits, 8);
  switch (l.zero) {
    case PackedLayout::Zero::kOne:
      if (l.zero_point != 1 << (l.bits - 1)) return std::nullopt;
      break;
    case PackedLayout::Zero::kCodes:
      if (l.zero_row_bits != zero_bytes * 8 || packed.zeros->elements() != l.rows * zero_bytes)
        return std::nullopt;
      out.zeros = reshaped(packed.zeros, {l.rows, zero_bytes});
      break;
    case PackedLayout::Zero::kNumbers:
      if (l.bits > 4 || packed.zeros->elements() != l.rows * blocks) return std::nullopt;
      out.zeros = cast_constant(reshaped(packed.zeros, {l.rows, blocks}), scale_dtype);
      break;
  }
  const int64_t code_bytes = l.block_columns * l.bits / 8;
  if (packed.codes->dtype() != DType::kUInt8 || packed.codes->elements() != l.rows * blocks * code_bytes ||
      packed.scales->elements() != l.rows * blocks || packed.codes->rows() != l.rows) {
    return std::nullopt;
  }
  out.codes = reshaped(packed.codes, {l.rows, blocks, code_bytes});
  out.scales = cast_constant(reshaped(packed.scales, {l.rows, blocks}), scale_dtype);
  return out;
}

/// One of the three tensors, rearranged from what a reader of codes gives.
class RearrangedRows : public RowSource {
 public:
  enum class Part { kCodes, kScales, kZeros };

  RearrangedRows(ConstantPtr matrix, Part part, int64_t block, DType scale_dtype)
      : matrix_(std::move(matrix)), part_(part), block_(block), dtype_(scale_dtype) {}

  Status read_rows(int64_t begin, int64_t end, std::span<std::byte> out) const override {
    const auto source = low_bit_weights(*matrix_, false);
    if (!source) return internal_error("packed weights lost their form");
    const LowBitForm& form = source->form();
    const auto columns = static_cast<size_t>(form.columns), groups = static_cast<size_t>(form.blocks());
    std::vector<uint8_t> codes(kRows * columns);
    std::vector<float> scales(kRows * groups), zeros(kRows * groups);
    const size_t row_bytes = out.size() / static_cast<size_t>(std::max<int64_t>(1, end - begin));
    for (int64_t row = begin; row < end; row += kRows) {
      const int64_t count = std::min(kRows, end - row);
      source->read(row, count, codes.data(), scales.data(), zeros.data());
      for (int64_t r = 0; r < count; ++r) {
        const auto i = static_cast<size_t>(r);
        put(form, codes.data() + i * columns, scales.data() + i * groups, zeros.data() + i * groups,
            out.data() + static_cast<size_t>(row - begin + r) * row_bytes, row_bytes);
      }
    }
    return ok_status();
  }

 private:
  /// A minimum m is the number -m / scale; without a scale all weights of the block are m, (0 - 1) * -m.
  static bool is_flat(const LowBitForm& form, float scale, float zero) {
    return form.zero == LowBitForm::Zero::kMinimum && scale == 0 && zero != 0;
  }

  void put(const LowBitForm& form, const uint8_t* codes, const float* scales, const float* zeros,
           std::byte* out, size_t bytes) const {
    const int64_t blocks = ceil_div(form.columns, block_);
    if (part_ == Part::kScales) {
      for (int64_t b = 0; b < blocks; ++b) {
        const int64_t g = b * block_ / form.block;
        put_number(out, b, is_flat(form, scales[g], zeros[g]) ? -zeros[g] : scales[g]);
      }
      return;
    }
    std::memset(out, 0, bytes);
    if (part_ == Part::kZeros) {
      for (int64_t b = 0; b < blocks; ++b) {
        const int64_t g = b * block_ / form.block;
        if (form.zero == LowBitForm::Zero::kCodes) {
          out[b * form.bits / 8] |= static_cast<std::byte>(static_cast<int>(zeros[g]) << (b * form.bits % 8));
        } else {
          const bool flat = is_flat(form, scales[g], zeros[g]);
          put_number(out, b, flat ? 1.0f : scales[g] == 0 ? 0.0f : -zeros[g] / scales[g]);
        }
      }
      return;
    }
    for (int64_t k = 0; k < blocks * block_; ++k) {
      // What pads the last block stands for 0 where zeros are codes.
      const int64_t g = std::min(k, form.columns - 1) / form.block;
      int code = form.zero == LowBitForm::Zero::kCenter  ? 1 << (form.bits - 1)
                 : form.zero == LowBitForm::Zero::kCodes ? static_cast<int>(zeros[g])
                                                         : 0;
      if (k < form.columns) code = is_flat(form, scales[g], zeros[g]) ? 0 : codes[k];
      out[k * form.bits / 8] |= static_cast<std::byte>(code << (k * form.bits % 8));
    }
  }

  void put_number(std::byte* out, int64_t i, float v) const {
    if (dtype_ == DType::kFloat32) {
      std::memcpy(out + 4 * i, &v, 4);
      return;
    }
    const uint16_t bits = dtype_ == DType::kFloat16 ? float_to_f16(v) : float_to_bf16(v);
    std::memcpy(out + 2 * i, &bits, 2);
  }

  ConstantPtr matrix_;
  Part part_;
  int64_t block_;
  DType dtype_;
};

/// The largest block of the form that no scale of `form` ends inside of.
int64_t block_for(const LowBitForm& form) {
  int64_t block = kMinBlock;
  if (form.block == form.columns) {  // one scale a row: the last block may be padded
    while (block < kMaxBlock && block < form.columns && (form.columns % (2 * block) == 0 || block < 32))
      block *= 2;
    return block;
  }
  while (block < kMaxBlock && form.block % (2 * block) == 0) block *= 2;
  return block;
}

}  // namespace

std::optional<RowBlocks> row_blocks(const ConstantPtr& matrix, DType scale_dtype) {
  const PackedConstant* packed = matrix->packed();
  if (!packed || matrix->dims().size() != 2 || matrix->elements() == 0) return std::nullopt;
  if (scale_dtype != DType::kFloat32 && scale_dtype != DType::kFloat16 && scale_dtype != DType::kBFloat16)
    return std::nullopt;
  if (!packed->rows && packed->layout.columns == matrix->dims()[1]) {
    if (auto stored = as_stored(*packed, scale_dtype)) return stored;
  }
  const auto source = low_bit_weights(*matrix, false);
  if (!source) return std::nullopt;
  const LowBitForm& form = source->form();
  const bool minima = form.zero == LowBitForm::Zero::kMinimum;
  if (minima && form.bits != 4) return std::nullopt;
  RowBlocks out{form.bits, block_for(form), nullptr, nullptr, nullptr};
  const int64_t blocks = ceil_div(form.columns, out.block);
  const auto part = [&](DType dtype, std::vector<int64_t> dims, RearrangedRows::Part which) {
    return Constant::from_rows(dtype, std::move(dims),
                               std::make_shared<RearrangedRows>(matrix, which, out.block, scale_dtype));
  };
  out.codes =
      part(DType::kUInt8, {form.rows, blocks, out.block * out.bits / 8}, RearrangedRows::Part::kCodes);
  out.scales = part(scale_dtype, {form.rows, blocks}, RearrangedRows::Part::kScales);
  if (minima) out.zeros = part(scale_dtype, {form.rows, blocks}, RearrangedRows::Part::kZeros);
  if (form.zero == LowBitForm::Zero::kCodes)
    out.zeros =
        part(DType::kUInt8, {form.rows, ceil_div(blocks * form.bits, 8)}, RearrangedRows::Part::kZeros);
  return out;
}

}  // namespace decant::ir
