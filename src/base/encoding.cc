#include "base/encoding.h"

#include <array>

namespace decant {
namespace {

struct Row {
  std::string_view name;
  uint16_t elements;
  uint16_t bytes;
};

constexpr std::array kRows = {
    Row{"dense", 1, 0},    Row{"Q4_0", 32, 18},   Row{"Q4_1", 32, 20},   Row{"Q5_0", 32, 22},
    Row{"Q5_1", 32, 24},   Row{"Q8_0", 32, 34},   Row{"Q2_K", 256, 84},  Row{"Q3_K", 256, 110},
    Row{"Q4_K", 256, 144}, Row{"Q5_K", 256, 176}, Row{"Q6_K", 256, 210},
};

const Row& row(Encoding encoding) {
  const auto i = static_cast<size_t>(encoding);
  return kRows[i < kRows.size() ? i : 0];
}

}  // namespace

std::string_view to_string(Encoding encoding) { return row(encoding).name; }
size_t block_elements(Encoding encoding) { return row(encoding).elements; }
size_t block_bytes(Encoding encoding) { return row(encoding).bytes; }

std::optional<Encoding> encoding_from_string(std::string_view name) {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].name == name) return static_cast<Encoding>(i);
  }
  return std::nullopt;
}

uint64_t encoded_bytes(Encoding encoding, DType dtype, uint64_t elements) {
  if (encoding == Encoding::kDense) return elements * size_of(dtype);
  const uint64_t per_block = block_elements(encoding);
  return (elements / per_block + (elements % per_block != 0)) * block_bytes(encoding);
}

}  // namespace decant
