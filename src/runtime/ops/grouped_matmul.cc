#include "runtime/kernel.h"

namespace decant::runtime {
namespace {

using ir::Node;

bool is_weight_dtype(DType t) {
  return t == DType::kFloat32 || t == DType::kFloat16 || t == DType::kBFloat16;
}

/// One product for each group that has rows: matrices of the others are not read.
class GroupedMatmul final : public Kernel {
 public:
  explicit GroupedMatmul(bool transposed) : transposed_(transposed) {}

  size_t scratch_bytes(std::span<const Arg> in, std::span<const Arg> out, int threads) const override {
    return kernels::matmul_scratch_bytes(in[0].dims[0], out[0].dims[1], in[0].dims[1], threads);
  }

  Status run(const Call& call) override {
    const Arg &x = call.inputs[0], &w = call.inputs[1], &ends = call.inputs[2];
    const int64_t rows = x.dims[0], k = x.dims[1], groups = w.dims[0], n = call.outputs[0].dims[1];
    if (w.dims[transposed_ ? 2 : 1] != k || w.dims[transposed_ ? 1 : 2] != n || ends.elements != groups)
      return invalid_argument("rows, matrices and ends of groups do not fit each other");
    int64_t row = 0;
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t end =
          ends.dtype == DType::kInt64 ? ends.as<const int64_t>()[g] : ends.as<const int32_t>()[g];
      if (end < row || end > rows) return invalid_argument("ends of groups must not fall, nor pass the rows");
      if (end == row) continue;
      kernels::MatmulPart part;
      part.b = w.as<const std::byte>() + static_cast<size_t>(g * k * n) * size_of(w.dtype);
      part.b_dtype = w.dtype;
      part.b_transposed = transposed_;
      part.ldb = transposed_ ? k : n;
      part.n = n;
      part.c = call.outputs[0].as<float>() + row * n;
      part.ldc = n;
      kernels::matmul(call.kernels, end - row, k, x.as<const float>() + row * k, k, part, call.scratch);
      row = end;
    }
    return row == rows ? ok_status() : invalid_argument("rows that belong to no group");
  }

 private:
  bool transposed_;
};

std::unique_ptr<Kernel> make(const Node& node) {
  const ir::Value *x = node.input(0), *w = node.input(1);
  if (x->dtype != DType::kFloat32 || !is_weight_dtype(w->dtype) || !x->shape || !w->shape) return nullptr;
  return std::make_unique<GroupedMatmul>(node.int_attribute("transB", 0) != 0);
}

}  // namespace

DECANT_KERNEL(GroupedMatMul) { return {"GroupedMatMul", "decant", &make}; }

}  // namespace decant::runtime
