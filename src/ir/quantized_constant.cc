#include "ir/quantized_constant.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "base/half.h"
#include "base/packed_codes.h"
#include "base/quantize_block.h"
#include "ir/packed_constant.h"

namespace decant::ir {
namespace {

/// Elements that are read and rounded in one step.
constexpr int64_t kStep = int64_t{1} << 20;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

void store(DType dtype, float v, std::byte* to) {
  if (dtype == DType::kFloat32) {
    std::memcpy(to, &v, 4);
    return;
  }
  const uint16_t bits = dtype == DType::kFloat16 ? float_to_f16(v) : float_to_bf16(v);
  std::memcpy(to, &bits, 2);
}

float load(DType dtype, const std::byte* from, int64_t i) {
  if (dtype != DType::kFloat64) return packed_number(from, dtype, i);
  double v;
  std::memcpy(&v, from + 8 * i, 8);
  return static_cast<float>(v);
}

/// Sizes of one row of a rounded matrix.
struct RowSizes {
  RowSizes(const Quantization& how, int64_t columns)
      : blocks(ceil_div(columns, how.block)),
        codes(blocks * how.block * how.bits / 8),
        scales(blocks * static_cast<int64_t>(size_of(how.scale_dtype))),
        zeros(how.zero_points ? ceil_div(blocks * how.bits, 8) : 0) {}
  int64_t blocks, codes, scales, zeros;
};

/// Where rows of a rounded matrix go.
struct RowBytes {
  std::vector<std::byte> codes, scales, zeros;
};

/// What became of a row.
struct RowOutcome {
  QuantizationError sums;
  int64_t bad = -1;  ///< the column of a weight, or of the first of a block, that has no rounded form
};

/// Rounds row `x` to row `row` of `out`.
RowOutcome round_row(const Quantization& how, const RowSizes& size, std::span<const float> x, size_t row,
                     RowBytes& out) {
  const BlockRounding rounding{how.bits, how.zero_points, how.scale_dtype, true};
  const auto columns = static_cast<int64_t>(x.size());
  std::byte* codes = out.codes.data() + row * static_cast<size_t>(size.codes);
  std::byte* scales = out.scales.data() + row * static_cast<size_t>(size.scales);
  std::byte* zeros = out.zeros.data() + row * static_cast<size_t>(size.zeros);
  RowOutcome outcome;
  for (int64_t i = 0; i < columns; ++i) {
    const double v = x[static_cast<size_t>(i)];
    if (!std::isfinite(v)) {
      outcome.bad = i;
      return outcome;
    }
    outcome.sums.signal += v * v;
  }
  std::array<uint8_t, kMaxBlock> c;
  for (int64_t b = 0; b < size.blocks; ++b) {
    const int64_t first = b * how.block, count = std::min(how.block, columns - first);
    const RoundedBlock r = round_block(
        rounding, x.subspan(static_cast<size_t>(first), static_cast<size_t>(count)), nullptr, c.data());
    if (!std::isfinite(r.scale)) {
      outcome.bad = first;
      return outcome;
    }
    outcome.sums.error += r.error;
    // What pads the last block decodes to 0.
    std::fill(c.begin() + count, c.begin() + how.block, static_cast<uint8_t>(r.zero));
    if (how.bits == 8) {
      std::memcpy(codes, c.data(), static_cast<size_t>(how.block));
    } else {
      for (int64_t i = 0; i < how.block / 2; ++i) {
        const auto at = static_cast<size_t>(2 * i);
        codes[i] = static_cast<std::byte>(c[at] | c[at + 1] << 4);
      }
    }
    codes += how.block * how.bits / 8;
    store(how.scale_dtype, r.scale, scales + b * static_cast<int64_t>(size_of(how.scale_dtype)));
    if (how.zero_points) {
      const int64_t bit = b * how.bits;
      zeros[bit / 8] |= static_cast<std::byte>(r.zero << (bit % 8));
    }
  }
  return outcome;
}

/// Rows [begin, end) of `matrix` as float32.
Status read_floats(const Constant& matrix, int64_t begin, int64_t end, std::vector<float>& out) {
  const int64_t count = (end - begin) * matrix.dims()[1];
  const DType dtype = matrix.dtype();
  out.resize(static_cast<size_t>(count));
  if (dtype == DType::kFloat32) return matrix.read_rows(begin, end, std::as_writable_bytes(std::span(out)));
  std::vector<std::byte> raw(out.size() * size_of(dtype));
  DECANT_RETURN_IF_ERROR(matrix.read_rows(begin, end, raw));
  for (int64_t i = 0; i < count; ++i) out[static_cast<size_t>(i)] = load(dtype, raw.data(), i);
  return ok_status();
}

/// Appends rows [begin, end) of `matrix`, rounded, to `out`, and adds to `sums`.
Status round_rows(const Constant& matrix, const Quantization& how, const std::string& name, SharedPool* pool,
                  int64_t begin, int64_t end, RowBytes& out, QuantizationError& sums) {
  const int64_t columns = matrix.dims()[1];
  const RowSizes size(how, columns);
  const auto first = out.codes.size() / static_cast<size_t>(size.codes);
  const auto total = first + static_cast<size_t>(end - begin);
  out.codes.resize(total * static_cast<size_t>(size.codes));
  out.scales.resize(total * static_cast<size_t>(size.scales));
  out.zeros.resize(total * static_cast<size_t>(size.zeros));
  std::vector<float> x;
  std::vector<RowOutcome> outcomes;
  const int64_t step = std::max<int64_t>(1, kStep / columns);
  for (int64_t row = begin; row < end; row += step) {
    const int64_t stop = std::min(end, row + step);
    DECANT_RETURN_IF_ERROR(read_floats(matrix, row, stop, x).with_context(name));
    outcomes.assign(static_cast<size_t>(stop - row), {});
    const auto work = [&](int, int64_t from, int64_t to) {
      for (int64_t i = from; i < to; ++i) {
        outcomes[static_cast<size_t>(i)] = round_row(
            how, size, std::span(x).subspan(static_cast<size_t>(i * columns), static_cast<size_t>(columns)),
            first + static_cast<size_t>(row - begin + i), out);
      }
    };
    if (pool) {
      const std::lock_guard lock(pool->mutex);
      pool->pool.parallel_for(stop - row, work);
    } else {
      work(0, 0, stop - row);
    }
    for (size_t i = 0; i < outcomes.size(); ++i) {
      const RowOutcome& o = outcomes[i];
      if (o.bad >= 0) {
        return invalid_model(
            fmt::format("{}: the weight in row {}, column {} is {}, which cannot be quantized{}", name,
                        row + static_cast<int64_t>(i), o.bad,
                        x[i * static_cast<size_t>(columns) + static_cast<size_t>(o.bad)],
                        how.scale_dtype == DType::kFloat16 ? " with float16 scales" : ""));
      }
      sums.error += o.sums.error;
      sums.signal += o.sums.signal;
    }
  }
  return ok_status();
}

}  // namespace

int64_t Quantization::bytes(int64_t rows, int64_t columns) const {
  const RowSizes size(*this, columns);
  return rows * (size.codes + size.scales + size.zeros);
}

double QuantizationError::relative() const { return signal > 0 ? std::sqrt(error / signal) : 0; }

class QuantizedMatrix {
 public:
  QuantizedMatrix(ConstantPtr matrix, const Quantization& how, std::string name,
                  std::shared_ptr<SharedPool> pool)
      : matrix_(std::move(matrix)),
        how_(how),
        name_(std::move(name)),
        pool_(std::move(pool)),
        size_(how, matrix_->dims()[1]) {}

  const Constant& matrix() const { return *matrix_; }
  const Quantization& how() const { return how_; }
  const RowSizes& size() const { return size_; }

  Status read_codes(int64_t begin, int64_t end, std::span<std::byte> out) const {
    RowBytes rows;
    QuantizationError sums;
    DECANT_RETURN_IF_ERROR(round(begin, end, rows, sums));
    std::memcpy(out.data(), rows.codes.data(), out.size());
    const std::lock_guard lock(mutex_);
    if (begin != known_) return ok_status();
    known_ = end;
    sums_.error += sums.error;
    sums_.signal += sums.signal;
    kept_.scales.insert(kept_.scales.end(), rows.scales.begin(), rows.scales.end());
    kept_.zeros.insert(kept_.zeros.end(), rows.zeros.begin(), rows.zeros.end());
    return ok_status();
  }

  Status read_scales(int64_t begin, int64_t end, std::span<std::byte> out) const {
    return read_kept(&RowBytes::scales, size_.scales, begin, end, out);
  }
  Status read_zeros(int64_t begin, int64_t end, std::span<std::byte> out) const {
    return read_kept(&RowBytes::zeros, size_.zeros, begin, end, out);
  }

  /// The decoded rows, in the matrix's dtype.
  Status read_values(int64_t begin, int64_t end, std::span<std::byte> out) const {
    RowBytes rows;
    QuantizationError sums;
    DECANT_RETURN_IF_ERROR(round(begin, end, rows, sums));
    PackedLayout layout = this->layout();
    layout.rows = end - begin;
    std::vector<float> values(static_cast<size_t>((end - begin) * layout.columns));
    decode_packed(layout, {rows.codes, rows.scales, rows.zeros, {}}, 0, static_cast<int64_t>(values.size()),
                  values.data());
    const DType dtype = matrix_->dtype();
    for (size_t i = 0; i < values.size(); ++i) {
      if (dtype == DType::kFloat64) {
        const double v = values[i];
        std::memcpy(out.data() + i * 8, &v, 8);
      } else {
        store(dtype, values[i], out.data() + i * size_of(dtype));
      }
    }
    return ok_status();
  }

  PackedLayout layout() const {
    PackedLayout l;
    l.rows = matrix_->dims()[0];
    l.columns = matrix_->dims()[1];
    l.bits = how_.bits;
    l.row_bits = size_.codes * 8;
    l.block_columns = how_.block;
    l.scale_dtype = how_.scale_dtype;
    l.zero = how_.zero_points ? PackedLayout::Zero::kCodes : PackedLayout::Zero::kOne;
    l.zero_point = 1 << (how_.bits - 1);
    l.zero_row_bits = size_.zeros * 8;
    return l;
  }

  QuantizationError sums() const {
    const std::lock_guard lock(mutex_);
    return sums_;
  }

 private:
  Status round(int64_t begin, int64_t end, RowBytes& rows, QuantizationError& sums) const {
    return round_rows(*matrix_, how_, name_, pool_.get(), begin, end, rows, sums);
  }

  Status read_kept(std::vector<std::byte> RowBytes::*part, int64_t row, int64_t begin, int64_t end,
                   std::span<std::byte> out) const {
    const auto at = static_cast<size_t>(begin * row), until = static_cast<size_t>(end * row);
    {
      const std::lock_guard lock(mutex_);
      std::vector<std::byte>& kept = kept_.*part;
      if (until <= kept.size()) {
        std::copy(kept.begin() + static_cast<std::ptrdiff_t>(at),
                  kept.begin() + static_cast<std::ptrdiff_t>(until), out.begin());
        if (end == matrix_->dims()[0]) std::vector<std::byte>().swap(kept);  // each is written once
        return ok_status();
      }
    }
    RowBytes rows;
    QuantizationError sums;
    DECANT_RETURN_IF_ERROR(round(begin, end, rows, sums));
    std::copy((rows.*part).begin(), (rows.*part).end(), out.begin());
    return ok_status();
  }

  ConstantPtr matrix_;
  Quantization how_;
  std::string name_;
  std::shared_ptr<SharedPool> pool_;
  RowSizes size_;
  mutable std::mutex mutex_;
  mutable int64_t known_ = 0;  ///< rows whose codes were read in order
  mutable RowBytes kept_;      ///< their scales and zero points, until they are read
  mutable QuantizationError sums_;
};

namespace {

/// One of the tensors that a matrix becomes.
class QuantizedPart : public RowSource {
 public:
  using Read = Status (QuantizedMatrix::*)(int64_t, int64_t, std::span<std::byte>) const;
  QuantizedPart(std::shared_ptr<const QuantizedMatrix> matrix, Read read)
      : matrix_(std::move(matrix)), read_(read) {}
  Status read_rows(int64_t begin, int64_t end, std::span<std::byte> out) const override {
    return ((*matrix_).*read_)(begin, end, out);
  }

 private:
  std::shared_ptr<const QuantizedMatrix> matrix_;
  Read read_;
};

class QuantizedRows : public RowSource {
 public:
  QuantizedRows(std::shared_ptr<const QuantizedMatrix> matrix, PackedConstant packed)
      : matrix_(std::move(matrix)), packed_(std::move(packed)) {}
  Status read_rows(int64_t begin, int64_t end, std::span<std::byte> out) const override {
    return matrix_->read_values(begin, end, out);
  }
  const PackedConstant* packed() const override { return &packed_; }

 private:
  std::shared_ptr<const QuantizedMatrix> matrix_;
  PackedConstant packed_;
};

}  // namespace

QuantizedConstant quantized_constant(ConstantPtr matrix, const Quantization& how, std::string name,
                                     std::shared_ptr<SharedPool> pool) {
  const DType dtype = matrix->dtype();
  const std::vector<int64_t> dims = matrix->dims();
  auto shared =
      std::make_shared<const QuantizedMatrix>(std::move(matrix), how, std::move(name), std::move(pool));
  const RowSizes& size = shared->size();
  const auto part = [&](DType type, std::vector<int64_t> shape, QuantizedPart::Read read) {
    return Constant::from_rows(type, std::move(shape), std::make_shared<QuantizedPart>(shared, read));
  };
  PackedConstant packed;
  packed.layout = shared->layout();
  packed.codes =
      part(DType::kUInt8, {dims[0], size.blocks, how.block * how.bits / 8}, &QuantizedMatrix::read_codes);
  packed.scales = part(how.scale_dtype, {dims[0], size.blocks}, &QuantizedMatrix::read_scales);
  if (how.zero_points)
    packed.zeros = part(DType::kUInt8, {dims[0], size.zeros}, &QuantizedMatrix::read_zeros);
  return {Constant::from_rows(dtype, dims, std::make_shared<QuantizedRows>(shared, std::move(packed))),
          shared};
}

QuantizationError error_of(const QuantizedMatrix& matrix) { return matrix.sums(); }

Result<QuantizationError> sample_quantization(const Constant& matrix, const Quantization& how,
                                              const std::string& name, int64_t rows) {
  const int64_t all = matrix.dims()[0], count = std::min(rows, all);
  QuantizationError sums;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = i * all / count;
    RowBytes out;
    DECANT_RETURN_IF_ERROR(round_rows(matrix, how, name, nullptr, row, row + 1, out, sums));
  }
  return sums;
}

}  // namespace decant::ir
