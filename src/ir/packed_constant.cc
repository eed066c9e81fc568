#include "ir/packed_constant.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "base/half.h"

namespace decant::ir {
namespace {

/// Elements decoded in one step.
constexpr int64_t kStep = int64_t{1} << 16;

class PackedRows : public RowSource {
 public:
  PackedRows(DType dtype, int64_t row_elements, PackedConstant packed)
      : dtype_(dtype), row_elements_(row_elements), packed_(std::move(packed)) {}

  Status read_rows(int64_t begin, int64_t end, std::span<std::byte> out) const override {
    const PackedBytes bytes = packed_.bytes();
    const int64_t first = begin * row_elements_, count = (end - begin) * row_elements_;
    std::vector<float> scratch(static_cast<size_t>(std::min(kStep, count)));
    for (int64_t at = 0; at < count; at += kStep) {
      const int64_t n = std::min(kStep, count - at);
      decode_packed(packed_.layout, bytes, first + at, n, scratch.data());
      std::byte* to = out.data() + static_cast<size_t>(at) * size_of(dtype_);
      if (dtype_ == DType::kFloat32) {
        std::memcpy(to, scratch.data(), static_cast<size_t>(n) * 4);
        continue;
      }
      for (int64_t i = 0; i < n; ++i) {
        const float v = scratch[static_cast<size_t>(i)];
        const uint16_t bits = dtype_ == DType::kFloat16 ? float_to_f16(v) : float_to_bf16(v);
        std::memcpy(to + 2 * i, &bits, 2);
      }
    }
    return ok_status();
  }
  const PackedConstant* packed() const override { return &packed_; }

 private:
  DType dtype_;
  int64_t row_elements_;
  PackedConstant packed_;
};

std::span<const std::byte> span_of(const ConstantPtr& c) {
  if (!c || !c->in_memory()) return {};
  return {c->tensor().data_as<std::byte>(), c->tensor().bytes()};
}

}  // namespace

PackedBytes PackedConstant::bytes() const {
  return {span_of(codes), span_of(scales), span_of(zeros), span_of(groups)};
}

std::unique_ptr<LowBitRows> low_bit_weights(const Constant& matrix, bool columns) {
  const PackedConstant* packed = matrix.packed();
  if (!packed || matrix.dims().size() != 2 || matrix.elements() == 0) return nullptr;
  if (packed->rows) return packed->rows(columns);
  if (!packed->codes->in_memory()) return nullptr;
  // Blocks that run on over the ends of rows have no rows to give.
  if (packed->layout.columns != matrix.dims()[1]) return nullptr;
  return low_bit_rows(packed->layout, packed->bytes(), columns);
}

bool decodes_rows(const Constant& constant) {
  const PackedConstant* packed = constant.packed();
  return packed && (!packed->rows || low_bit_weights(constant, false));
}

Result<ConstantPtr> packed_constant(DType dtype, std::vector<int64_t> dims, PackedConstant packed) {
  if (dtype != DType::kFloat32 && dtype != DType::kFloat16 && dtype != DType::kBFloat16) {
    return unsupported("packed weights of dtype " + std::string(to_string(dtype)));
  }
  if (packed.rows) return unsupported("packed weights in another form");
  for (const ConstantPtr& c : {packed.codes, packed.scales, packed.zeros, packed.groups}) {
    if (c && !c->in_memory()) return unsupported("packed weights that are computed");
  }
  if (!packed.codes || !packed.scales) return internal_error("packed weights without codes or scales");
  DECANT_RETURN_IF_ERROR(check_packed(packed.layout, packed.bytes()));
  const auto elements = checked_elements(dims);
  const int64_t rows = dims.empty() ? 1 : dims[0];
  if (!elements || *elements != static_cast<uint64_t>(packed.layout.rows * packed.layout.columns)) {
    return invalid_model(describe(dtype, dims) + " does not fit packed weights of " +
                         std::to_string(packed.layout.rows) + " x " + std::to_string(packed.layout.columns));
  }
  const int64_t row_elements = rows ? static_cast<int64_t>(*elements) / rows : 0;
  return Constant::from_rows(dtype, std::move(dims),
                             std::make_shared<PackedRows>(dtype, row_elements, std::move(packed)));
}

}  // namespace decant::ir
