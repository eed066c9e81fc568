#include "ir/constant.h"

#include <algorithm>
#include <cstring>

#include "base/half.h"
#include "ir/packed_constant.h"

namespace decant::ir {
namespace {

/// Scratch of one conversion step; a range that needs more is read in smaller ones.
constexpr int64_t kScratchBytes = int64_t{4} << 20;

int64_t row_elements(const std::vector<int64_t>& dims) {
  int64_t n = 1;
  for (size_t i = 1; i < dims.size(); ++i) n *= dims[i];
  return n;
}

float load_float(DType dtype, const std::byte* p, int64_t i) {
  switch (dtype) {
    case DType::kFloat16:
    case DType::kBFloat16: {
      uint16_t bits;
      std::memcpy(&bits, p + 2 * i, 2);
      return dtype == DType::kFloat16 ? f16_to_float(bits) : bf16_to_float(bits);
    }
    case DType::kFloat64: {
      double v;
      std::memcpy(&v, p + 8 * i, 8);
      return static_cast<float>(v);
    }
    default: {
      float v;
      std::memcpy(&v, p + 4 * i, 4);
      return v;
    }
  }
}

void store_float(DType dtype, std::byte* p, int64_t i, float v) {
  switch (dtype) {
    case DType::kFloat16:
    case DType::kBFloat16: {
      const uint16_t bits = dtype == DType::kFloat16 ? float_to_f16(v) : float_to_bf16(v);
      std::memcpy(p + 2 * i, &bits, 2);
      break;
    }
    case DType::kFloat64: {
      const double d = v;
      std::memcpy(p + 8 * i, &d, 8);
      break;
    }
    default:
      std::memcpy(p + 4 * i, &v, 4);
  }
}

class CastRows : public RowSource {
 public:
  CastRows(ConstantPtr base, DType dtype) : base_(std::move(base)), dtype_(dtype) {}

  Status read_rows(int64_t begin, int64_t end, std::span<std::byte> out) const override {
    const int64_t per_row = row_elements(base_->dims());
    const auto from = static_cast<int64_t>(size_of(base_->dtype()));
    const auto to = static_cast<int64_t>(size_of(dtype_));
    const int64_t step = std::max<int64_t>(1, kScratchBytes / std::max<int64_t>(1, per_row * from));
    std::vector<std::byte> scratch;
    for (int64_t row = begin; row < end; row += step) {
      const int64_t n = std::min(step, end - row) * per_row;
      scratch.resize(static_cast<size_t>(n * from));
      DECANT_RETURN_IF_ERROR(base_->read_rows(row, std::min(end, row + step), scratch));
      std::byte* target = out.data() + (row - begin) * per_row * to;
      for (int64_t i = 0; i < n; ++i)
        store_float(dtype_, target, i, load_float(base_->dtype(), scratch.data(), i));
    }
    return ok_status();
  }
  const PackedConstant* packed() const override {
    return dtype_ == DType::kFloat64 ? nullptr : base_->packed();
  }

 private:
  ConstantPtr base_;
  DType dtype_;
};

class TransposedRows : public RowSource {
 public:
  explicit TransposedRows(ConstantPtr base) : base_(std::move(base)) {
    packed_.rows = [matrix = base_.get()](bool columns) { return low_bit_weights(*matrix, !columns); };
  }

  Status read_rows(int64_t begin, int64_t end, std::span<std::byte> out) const override {
    const int64_t rows = base_->dims()[0], columns = base_->dims()[1];
    const auto size = static_cast<int64_t>(size_of(base_->dtype()));
    const int64_t step = std::max<int64_t>(1, kScratchBytes / std::max<int64_t>(1, columns * size));
    std::vector<std::byte> scratch;
    const bool direct = base_->in_memory();
    for (int64_t r = 0; r < rows; r += step) {
      const int64_t n = std::min(step, rows - r);
      const std::byte* block = nullptr;
      if (direct) {
        block = base_->tensor().data_as<std::byte>() + r * columns * size;
      } else {
        scratch.resize(static_cast<size_t>(n * columns * size));
        DECANT_RETURN_IF_ERROR(base_->read_rows(r, r + n, scratch));
        block = scratch.data();
      }
      // Tiles of 16 source rows keep both the reads and the writes within a few cache lines each.
      for (int64_t i0 = 0; i0 < n; i0 += 16) {
        const int64_t i1 = std::min(n, i0 + 16);
        for (int64_t c = begin; c < end; ++c) {
          for (int64_t i = i0; i < i1; ++i) {
            std::memcpy(out.data() + ((c - begin) * rows + r + i) * size, block + (i * columns + c) * size,
                        static_cast<size_t>(size));
          }
        }
      }
    }
    return ok_status();
  }
  const PackedConstant* packed() const override { return base_->packed() ? &packed_ : nullptr; }
  const ConstantPtr& base() const { return base_; }

 private:
  ConstantPtr base_;
  PackedConstant packed_;
};

}  // namespace

ConstantPtr Constant::from_bytes(DType dtype, std::vector<int64_t> dims, std::span<const std::byte> bytes,
                                 std::shared_ptr<const void> owner) {
  return from_tensor(Tensor::view(dtype, std::move(dims), bytes.data(), std::move(owner)));
}

ConstantPtr Constant::from_tensor(const Tensor& tensor) {
  auto c = std::shared_ptr<Constant>(new Constant());
  c->dtype_ = tensor.dtype();
  c->dims_ = tensor.dims();
  c->elements_ = tensor.elements();
  c->tensor_ = tensor;
  return c;
}

ConstantPtr Constant::from_rows(DType dtype, std::vector<int64_t> dims,
                                std::shared_ptr<const RowSource> source) {
  auto c = std::shared_ptr<Constant>(new Constant());
  c->dtype_ = dtype;
  c->elements_ = 1;
  for (int64_t d : dims) c->elements_ *= d;
  c->dims_ = std::move(dims);
  c->source_ = std::move(source);
  return c;
}

Tensor Constant::tensor() const { return tensor_; }

Result<Tensor> Constant::materialize() const {
  if (in_memory()) return tensor_;
  DECANT_ASSIGN(Tensor t, Tensor::allocate(dtype_, dims_));
  DECANT_RETURN_IF_ERROR(source_->read_rows(0, rows(), {t.mutable_data_as<std::byte>(), t.bytes()}));
  return t;
}

Status Constant::read_rows(int64_t begin, int64_t end, std::span<std::byte> out) const {
  const auto row_length = static_cast<uint64_t>(row_elements(dims_));
  const size_t row_bytes = static_cast<size_t>(bytes_of(dtype_, row_length).value_or(0));
  const bool whole = !is_packed(dtype_) || row_length * static_cast<uint64_t>(bits_of(dtype_)) % 8 == 0 ||
                     (begin == 0 && end == 1 && rows() == 1);
  if (!whole || begin < 0 || end < begin || end > rows() ||
      out.size() != static_cast<size_t>(end - begin) * row_bytes) {
    return internal_error("constant rows [" + std::to_string(begin) + ", " + std::to_string(end) + ") of " +
                          describe(dtype_, dims_) + " do not fit the buffer");
  }
  if (!in_memory()) return source_->read_rows(begin, end, out);
  if (!out.empty())
    std::memcpy(out.data(), tensor_.data_as<std::byte>() + static_cast<size_t>(begin) * row_bytes,
                out.size());
  return ok_status();
}

ConstantPtr cast_constant(ConstantPtr constant, DType dtype) {
  if (constant->dtype() == dtype || !is_float(constant->dtype()) || !is_float(dtype)) return constant;
  std::vector<int64_t> dims = constant->dims();
  if (const PackedConstant* packed = constant->packed(); packed && dtype != DType::kFloat64) {
    if (auto decoded = packed_constant(dtype, dims, *packed); decoded.ok()) return *decoded;
  }
  return Constant::from_rows(dtype, std::move(dims), std::make_shared<CastRows>(std::move(constant), dtype));
}

ConstantPtr transpose_constant(ConstantPtr matrix) {
  if (const auto* across = dynamic_cast<const TransposedRows*>(matrix->row_source())) return across->base();
  const std::vector<int64_t> dims = {matrix->dims()[1], matrix->dims()[0]};
  const DType dtype = matrix->dtype();
  return Constant::from_rows(dtype, dims, std::make_shared<TransposedRows>(std::move(matrix)));
}

}  // namespace decant::ir
