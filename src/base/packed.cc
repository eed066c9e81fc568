#include "base/packed.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>

#include "base/checked.h"
#include "base/packed_codes.h"

namespace decant {
namespace {

int number_of(uint32_t code, const PackedLayout& l) {
  if (l.is_signed && (code >> (l.bits - 1)) != 0) return static_cast<int>(code) - (1 << l.bits);
  return static_cast<int>(code);
}

/// Scale and zero point of one block.
struct Block {
  float scale, zero;
};

Block block_at(const PackedLayout& l, const PackedBytes& b, int64_t row, int64_t column) {
  const int64_t index = row * l.scale_columns() + column;
  Block block{packed_number(b.scales.data(), l.scale_dtype, index), static_cast<float>(l.zero_point)};
  if (l.zero == PackedLayout::Zero::kNumbers) {
    block.zero = packed_number(b.zeros.data(), l.zero_dtype, index);
  } else if (l.zero == PackedLayout::Zero::kCodes) {
    const auto bit = static_cast<uint64_t>(row * l.zero_row_bits + column * l.bits);
    block.zero = static_cast<float>(number_of(packed_code(b.zeros.data(), bit, l.bits), l));
  }
  return block;
}

float value_of(const PackedLayout& l, uint32_t code, const Block& block) {
  if (l.table) return l.table[code] * block.scale;
  return (static_cast<float>(number_of(code, l)) - block.zero) * block.scale;
}

uint32_t read_code(const PackedLayout& l, const PackedBytes& b, int64_t row, int64_t column) {
  // With the high half first, the two codes of a byte change places.
  const int64_t bit = row * l.row_bits + column * l.bits;
  return packed_code(b.codes.data(), static_cast<uint64_t>(l.high_first ? bit ^ 4 : bit), l.bits);
}

/// Columns [begin, end) of one row, all of one block.
void decode_run(const PackedLayout& l, const PackedBytes& b, int64_t row, int64_t begin, int64_t end,
                const Block& block, float* out) {
  // The values of all codes first, where the run is longer than their number.
  if (l.bits <= 4 && end - begin >= 16) {
    std::array<float, 16> values{};
    for (uint32_t code = 0; code < (1u << l.bits); ++code) values[code] = value_of(l, code, block);
    const int64_t bit = row * l.row_bits + begin * l.bits;
    if (l.bits == 4 && bit % 8 == 0) {
      const std::byte* data = b.codes.data() + bit / 8;
      const int first = l.high_first ? 4 : 0, second = 4 - first;
      for (; begin + 1 < end; begin += 2) {
        const auto pair = std::to_integer<uint32_t>(*data++);
        *out++ = values[(pair >> first) & 15];
        *out++ = values[(pair >> second) & 15];
      }
    }
    for (int64_t c = begin; c < end; ++c) *out++ = values[read_code(l, b, row, c)];
    return;
  }
  for (int64_t c = begin; c < end; ++c) *out++ = value_of(l, read_code(l, b, row, c), block);
}

bool is_scale_dtype(DType t) { return t == DType::kFloat32 || t == DType::kFloat16 || t == DType::kBFloat16; }

/// Bytes of `rows` rows of `columns` codes; nothing when that is impossible.
std::optional<uint64_t> stream_bytes(int64_t rows, int64_t columns, int bits, int64_t row_bits) {
  if (rows == 0 || columns == 0) return 0;
  const auto used = checked_mul(static_cast<uint64_t>(columns), static_cast<uint64_t>(bits));
  const auto before = checked_mul(static_cast<uint64_t>(rows - 1), static_cast<uint64_t>(row_bits));
  if (!used || !before || row_bits < 0) return std::nullopt;
  if (rows > 1 && *used > static_cast<uint64_t>(row_bits)) return std::nullopt;
  const auto total = checked_add(*used, *before);
  return total && *total < (uint64_t{1} << 56) ? std::optional((*total + 7) / 8) : std::nullopt;
}

}  // namespace

const float* nf4_table() {
  static constexpr std::array<float, 16> kValues = {-1.0f,
                                                    -0.6961928009986877f,
                                                    -0.5250730514526367f,
                                                    -0.39491748809814453f,
                                                    -0.28444138169288635f,
                                                    -0.18477343022823334f,
                                                    -0.09105003625154495f,
                                                    0.0f,
                                                    0.07958029955625534f,
                                                    0.16093020141124725f,
                                                    0.24611230194568634f,
                                                    0.33791524171829224f,
                                                    0.44070982933044434f,
                                                    0.5626170039176941f,
                                                    0.7229568362236023f,
                                                    1.0f};
  return kValues.data();
}

const float* fp4_table() {
  static constexpr std::array<float, 16> kValues = {
      0.0f,  0.00520833333f,  0.66666667f,  1.0f,  0.33333333f,  0.5f,  0.16666667f,  0.25f,
      -0.0f, -0.00520833333f, -0.66666667f, -1.0f, -0.33333333f, -0.5f, -0.16666667f, -0.25f};
  return kValues.data();
}

Status check_packed(const PackedLayout& l, const PackedBytes& b) {
  const int64_t dims[] = {l.rows, l.columns};
  if (!checked_elements(dims)) return invalid_model("packed weights of impossible size");
  if (l.bits < 1 || l.bits > 8) return unsupported("packed weights of " + std::to_string(l.bits) + " bits");
  if ((l.high_first || l.table) && l.bits != 4) return internal_error("a layout for 4-bit codes only");
  if (l.block_rows <= 0 || l.block_columns <= 0) return invalid_model("packed weights with empty blocks");
  if (!is_scale_dtype(l.scale_dtype)) {
    return unsupported("packed weights with scales of " + std::string(to_string(l.scale_dtype)));
  }
  const auto short_of = [](std::string_view what, uint64_t need, uint64_t have) {
    return invalid_model("packed weights need " + std::to_string(need) + " bytes of " + std::string(what) +
                         ", there are " + std::to_string(have));
  };
  const auto codes = stream_bytes(l.rows, l.columns, l.bits, l.row_bits);
  if (!codes) return invalid_model("rows of packed weights overlap");
  // Exchanged halves may touch the last byte's other half: it is there, since bytes are whole.
  if (b.codes.size() < *codes) return short_of("codes", *codes, b.codes.size());
  const auto blocks = static_cast<uint64_t>(l.scale_rows()) * static_cast<uint64_t>(l.scale_columns());
  const uint64_t scales = blocks * size_of(l.scale_dtype);
  if (b.scales.size() < scales) return short_of("scales", scales, b.scales.size());
  if (l.zero == PackedLayout::Zero::kNumbers) {
    if (!is_scale_dtype(l.zero_dtype)) return unsupported("packed weights with zero points of that type");
    const uint64_t zeros = blocks * size_of(l.zero_dtype);
    if (b.zeros.size() < zeros) return short_of("zero points", zeros, b.zeros.size());
  } else if (l.zero == PackedLayout::Zero::kCodes) {
    const auto zeros = stream_bytes(l.scale_rows(), l.scale_columns(), l.bits, l.zero_row_bits);
    if (!zeros) return invalid_model("rows of packed zero points overlap");
    if (b.zeros.size() < *zeros) return short_of("zero points", *zeros, b.zeros.size());
  }
  if (b.groups.empty()) return ok_status();
  if (b.groups.size() != static_cast<uint64_t>(l.columns) * 4)
    return short_of("group indices", static_cast<uint64_t>(l.columns) * 4, b.groups.size());
  for (int64_t c = 0; c < l.columns; ++c) {
    int32_t group;
    std::memcpy(&group, b.groups.data() + 4 * c, 4);
    if (group < 0 || group >= l.scale_columns()) {
      return invalid_model("group index " + std::to_string(group) + " of packed weights is outside [0, " +
                           std::to_string(l.scale_columns()) + ")");
    }
  }
  return ok_status();
}

void decode_packed(const PackedLayout& l, const PackedBytes& b, int64_t first, int64_t count, float* out) {
  if (count <= 0) return;
  int64_t row = first / l.columns, column = first % l.columns;
  while (count > 0) {
    const int64_t stop = std::min(l.columns, column + count);
    count -= stop - column;
    const int64_t block_row = row / l.block_rows;
    while (column < stop) {
      int64_t block = column / l.block_columns, end = std::min(stop, (block + 1) * l.block_columns);
      if (!b.groups.empty()) {
        int32_t group;
        std::memcpy(&group, b.groups.data() + 4 * column, 4);
        block = group;
        end = column + 1;
      }
      decode_run(l, b, row, column, end, block_at(l, b, block_row, block), out);
      out += end - column;
      column = end;
    }
    ++row;
    column = 0;
  }
}

}  // namespace decant
