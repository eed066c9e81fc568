#include "base/low_bit.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/half.h"
#include "base/packed_codes.h"

namespace decant {
namespace {

bool fits_half(float v) { return std::isfinite(v) && f16_to_float(float_to_f16(v)) == v; }

/// Codes become `number + offset`, which is 2^bits of the form at most.
class PackedRowsReader final : public LowBitRows {
 public:
  PackedRowsReader(const PackedLayout& layout, const PackedBytes& bytes, bool transposed)
      : l_(layout), b_(bytes), transposed_(transposed) {}

  /// False when the layout has no form.
  bool init() {
    if (l_.table || !b_.groups.empty() || l_.rows < 1 || l_.columns < 1) return false;
    const int64_t along = transposed_ ? l_.block_rows : l_.block_columns;
    form_.rows = transposed_ ? l_.columns : l_.rows;
    form_.columns = transposed_ ? l_.rows : l_.columns;
    form_.bits = l_.bits <= 4 ? 4 : 8;
    form_.block = std::min(along, form_.columns);
    if (form_.block < form_.columns && form_.block != 16 && form_.block % 32 != 0) return false;
    lowest_ = l_.is_signed ? -(1 << (l_.bits - 1)) : 0;
    choose_zero();
    choose_scales();
    return true;
  }

  void read(int64_t first, int64_t rows, uint8_t* codes, float* scales, float* zeros) const override {
    if (transposed_) {
      for (int64_t k = 0; k < form_.columns; ++k)
        for (int64_t r = 0; r < rows; ++r) codes[r * form_.columns + k] = code(k, first + r);
    } else {
      for (int64_t r = 0; r < rows; ++r) read_row(first + r, codes + r * form_.columns);
    }
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = 0; i < form_.blocks(); ++i) {
        const int64_t at = scale_index(first + r, i);
        const float scale = packed_number(b_.scales.data(), l_.scale_dtype, at);
        scales[r * form_.blocks() + i] = scale;
        if (form_.zero == LowBitForm::Zero::kCodes) zeros[r * form_.blocks() + i] = zero_of(at) + shift();
        if (form_.zero == LowBitForm::Zero::kMinimum)
          zeros[r * form_.blocks() + i] = -(zero_of(at) + shift()) * scale;
      }
    }
  }

  LowBitSource source() const override {
    const auto address = [](std::span<const std::byte> bytes) {
      return std::bit_cast<uintptr_t>(bytes.data());
    };
    LowBitSource source = {address(b_.codes), address(b_.scales), address(b_.zeros)};
    for (const int64_t n : {l_.rows, l_.columns, static_cast<int64_t>(l_.bits), l_.row_bits, l_.block_rows,
                            l_.block_columns, l_.zero_row_bits, static_cast<int64_t>(l_.zero_point)})
      source.push_back(static_cast<uint64_t>(n));
    for (const int n : {static_cast<int>(l_.scale_dtype), static_cast<int>(l_.zero_dtype),
                        static_cast<int>(l_.zero), int{l_.high_first}, int{l_.is_signed}, int{transposed_}})
      source.push_back(static_cast<uint64_t>(n));
    return source;
  }

 private:
  float shift() const { return static_cast<float>(add_ - lowest_); }

  /// Index of the scale of output row `row` and block `block` of its columns.
  int64_t scale_index(int64_t row, int64_t block) const {
    if (!transposed_) return row / l_.block_rows * l_.scale_columns() + block;
    return block * l_.scale_columns() + row / l_.block_columns;
  }

  /// The zero point, as a number of the layout.
  float zero_of(int64_t scale_index) const {
    if (l_.zero == PackedLayout::Zero::kOne) return static_cast<float>(l_.zero_point);
    if (l_.zero == PackedLayout::Zero::kNumbers)
      return packed_number(b_.zeros.data(), l_.zero_dtype, scale_index);
    const int64_t row = scale_index / l_.scale_columns(), column = scale_index % l_.scale_columns();
    const uint32_t c = packed_code(b_.zeros.data(),
                                   static_cast<uint64_t>(row * l_.zero_row_bits + column * l_.bits), l_.bits);
    return static_cast<float>(static_cast<int>(c ^ flip()) + lowest_);
  }

  /// Two's complement with the top bit turned counts from the lowest number.
  uint32_t flip() const { return l_.is_signed ? 1u << (l_.bits - 1) : 0; }

  uint8_t code(int64_t row, int64_t column) const {
    const int64_t bit = row * l_.row_bits + column * l_.bits;
    const uint32_t c =
        packed_code(b_.codes.data(), static_cast<uint64_t>(l_.high_first ? bit ^ 4 : bit), l_.bits);
    return static_cast<uint8_t>((c ^ flip()) + static_cast<uint32_t>(add_));
  }

  void read_row(int64_t row, uint8_t* out) const {
    const int64_t bit = row * l_.row_bits, n = form_.columns;
    const auto* from = reinterpret_cast<const uint8_t*>(b_.codes.data()) + bit / 8;
    const auto turn = static_cast<uint8_t>(flip());
    if (bit % 8 == 0 && l_.bits == 8 && add_ == 0) {
      for (int64_t i = 0; i < n; ++i) out[i] = static_cast<uint8_t>(from[i] ^ turn);
      return;
    }
    if (bit % 8 == 0 && l_.bits == 4 && add_ == 0 && !l_.high_first) {
      for (int64_t i = 0; i < n / 2; ++i) {
        out[2 * i] = static_cast<uint8_t>((from[i] & 15) ^ turn);
        out[2 * i + 1] = static_cast<uint8_t>((from[i] >> 4) ^ turn);
      }
      if (n % 2 != 0) out[n - 1] = static_cast<uint8_t>((from[n / 2] & 15) ^ turn);
      return;
    }
    for (int64_t i = 0; i < n; ++i) out[i] = code(row, i);
  }

  void choose_zero() {
    const int center = 1 << (form_.bits - 1), codes = 1 << l_.bits, room = (1 << form_.bits) - codes;
    const int64_t count = l_.scale_rows() * l_.scale_columns();
    bool integers = true, equal = true;
    const float first = zero_of(0);
    for (int64_t i = 0; i < count && integers; ++i) {
      const float z = zero_of(i);
      equal = equal && z == first;
      const float stored = z - static_cast<float>(lowest_);
      integers = stored >= 0 && stored < static_cast<float>(1 << form_.bits) && stored == std::floor(stored);
      if (l_.zero == PackedLayout::Zero::kOne) break;
    }
    if (integers && equal) {
      // Codes may move within the form's range, so that the zero comes to its middle.
      const int move = center - (static_cast<int>(first) - lowest_);
      if (move >= 0 && move <= room) {
        add_ = move;
        return;
      }
    }
    form_.zero = integers ? LowBitForm::Zero::kCodes : LowBitForm::Zero::kMinimum;
  }

  void choose_scales() {
    const int64_t count = l_.scale_rows() * l_.scale_columns();
    form_.half_scales = form_.zero != LowBitForm::Zero::kMinimum;
    for (int64_t i = 0; i < count && form_.half_scales; ++i)
      form_.half_scales = fits_half(packed_number(b_.scales.data(), l_.scale_dtype, i));
  }

  PackedLayout l_;
  PackedBytes b_;
  bool transposed_;
  int lowest_ = 0, add_ = 0;
};

}  // namespace

std::unique_ptr<LowBitRows> low_bit_rows(const PackedLayout& layout, const PackedBytes& bytes,
                                         bool transposed) {
  auto reader = std::make_unique<PackedRowsReader>(layout, bytes, transposed);
  if (!reader->init()) return nullptr;
  return reader;
}

}  // namespace decant
