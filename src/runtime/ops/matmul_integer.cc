#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/kernel.h"

namespace decant::runtime {
namespace {

using ir::Node;

bool is_byte(DType t) { return t == DType::kInt8 || t == DType::kUInt8; }

/// [k, n] to [n, k], in tiles that stay in the cache.
void transpose_bytes(const uint8_t* x, int64_t k, int64_t n, uint8_t* y) {
  constexpr int64_t kTile = 32;
  for (int64_t i0 = 0; i0 < k; i0 += kTile) {
    for (int64_t j0 = 0; j0 < n; j0 += kTile) {
      for (int64_t j = j0; j < std::min(n, j0 + kTile); ++j) {
        for (int64_t i = i0; i < std::min(k, i0 + kTile); ++i) y[j * k + i] = x[i * n + j];
      }
    }
  }
}

int64_t zero_count(std::span<const Arg> in, size_t i) { return in.size() > i && in[i] ? in[i].elements : 0; }

/// MatMulInteger-10 with one matrix B (constant ones are transposed once): leading dims of A are rows. Zero
/// points: one, or for B one for each column.
class MatMulInteger final : public Kernel {
 public:
  explicit MatMulInteger(const ir::Constant* b) {
    if (!b) return;
    const int64_t k = b->dims()[0], n = b->dims()[1];
    columns_.resize(static_cast<size_t>(k * n));
    transpose_bytes(b->tensor().data_as<uint8_t>(), k, n, columns_.data());
  }

  size_t scratch_bytes(std::span<const Arg> in, std::span<const Arg> out, int) const override {
    const Arg &a = in[0], &b = in[1], &c = out[0];
    const int64_t k = b.dims[0], n = b.dims[1], m = k ? a.elements / std::max<int64_t>(1, k) : 0;
    (void)c;
    size_t bytes = kernels::integer_matmul_scratch_bytes(m, k) + 64;
    bytes += static_cast<size_t>(n + 1) * sizeof(int32_t) + 64;
    if (columns_.empty()) bytes += static_cast<size_t>(k * n) + 64;
    return bytes;
  }

  Status run(const Call& call) override {
    const Arg &a = call.inputs[0], &b = call.inputs[1], &c = call.outputs[0];
    const int64_t k = b.dims[0], n = b.dims[1];
    if (a.dims[a.rank - 1] != k) {
      return invalid_argument("rows of " + std::to_string(a.dims[a.rank - 1]) +
                              " elements meet a matrix of " + std::to_string(k));
    }
    if (c.elements == 0) return ok_status();
    if (k == 0) {
      std::fill_n(c.as<int32_t>(), c.elements, 0);
      return ok_status();
    }
    const int64_t a_zeros = zero_count(call.inputs, 2), b_zeros = zero_count(call.inputs, 3);
    if (a_zeros > 1 || (b_zeros > 1 && b_zeros != n))
      return invalid_argument("a zero point does not fit its matrix");
    auto* zeros = reinterpret_cast<int32_t*>(call.scratch.data());
    const auto read = [](const Arg& x, int64_t i) {
      return x.dtype == DType::kInt8 ? static_cast<int32_t>(x.as<const int8_t>()[i])
                                     : static_cast<int32_t>(x.as<const uint8_t>()[i]);
    };
    if (a_zeros) zeros[0] = read(call.inputs[2], 0);
    for (int64_t j = 0; j < b_zeros; ++j) zeros[1 + j] = read(call.inputs[3], j);
    size_t used = (static_cast<size_t>(n + 1) * sizeof(int32_t) + 63) / 64 * 64;
    const uint8_t* columns = columns_.data();
    if (columns_.empty()) {
      auto* transposed = reinterpret_cast<uint8_t*>(call.scratch.data() + used);
      transpose_bytes(b.as<const uint8_t>(), k, n, transposed);
      columns = transposed;
      used += (static_cast<size_t>(k * n) + 63) / 64 * 64;
    }
    kernels::IntegerMatmulArgs g;
    g.m = a.elements / k;
    g.n = n;
    g.k = k;
    g.a = a.data;
    g.a_signed = a.dtype == DType::kInt8;
    g.a_zeros = a_zeros ? zeros : nullptr;
    g.a_zero_count = a_zeros;
    g.b = columns;
    g.b_signed = b.dtype == DType::kInt8;
    g.b_zeros = b_zeros ? zeros + 1 : nullptr;
    g.b_zero_count = b_zeros;
    g.c = c.as<int32_t>();
    kernels::integer_matmul(call.kernels, g, call.scratch.subspan(used));
    return ok_status();
  }

 private:
  std::vector<uint8_t> columns_;
};

std::unique_ptr<Kernel> make_matmul_integer(const Node& node) {
  const ir::Value *a = node.input(0), *b = node.input(1), *a_zero = node.input(2);
  if (!is_byte(a->dtype) || !is_byte(b->dtype) || !a->shape || a->shape->empty() || !b->shape ||
      b->shape->size() != 2)
    return nullptr;
  // A zero point for each row of A would follow the rows of every matrix of the stack.
  if (a_zero && !(a_zero->shape && (a_zero->shape->empty() ||
                                    (a_zero->shape->size() == 1 && (*a_zero->shape)[0] == ir::Dim(1)))))
    return nullptr;
  if (b->constant && !b->constant->in_memory()) return nullptr;
  return std::make_unique<MatMulInteger>(b->constant.get());
}

std::unique_ptr<Kernel> make_dynamic_quantize(const Node& node) {
  if (node.input(0)->dtype != DType::kFloat32 || !node.output(0)) return nullptr;
  return kernel_of([](const Call& call) {
    const Arg& x = call.inputs[0];
    float low = 0, high = 0;
    kernels::range_with_zero(call.kernels, x.as<const float>(), x.elements, &low, &high);
    const float scale = high == low ? 1.0f : (high - low) / 255.0f;
    const float zero = scale == 0 ? 0 : std::clamp(std::nearbyint((0.0f - low) / scale), 0.0f, 255.0f);
    if (call.outputs.size() > 1 && call.outputs[1]) *call.outputs[1].as<float>() = scale;
    if (call.outputs.size() > 2 && call.outputs[2])
      *call.outputs[2].as<uint8_t>() = static_cast<uint8_t>(zero);
    if (scale == 0) {
      std::fill_n(call.outputs[0].as<uint8_t>(), x.elements, uint8_t{0});
      return ok_status();
    }
    kernels::quantize(call.kernels, x.as<const float>(), scale, static_cast<int32_t>(zero), false,
                      call.outputs[0].data, x.elements);
    return ok_status();
  });
}

}  // namespace

DECANT_KERNEL(MatMulInteger) { return {"MatMulInteger", "", &make_matmul_integer}; }
DECANT_KERNEL(DynamicQuantizeLinear) { return {"DynamicQuantizeLinear", "", &make_dynamic_quantize}; }

}  // namespace decant::runtime
