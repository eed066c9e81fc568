#include "runtime/kernel.h"

namespace decant::runtime {
namespace {

/// A·B (+ a bias for each column) of f32 matrices; B may be transposed.
class Gemm final : public Kernel {
 public:
  explicit Gemm(bool transposed) : transposed_(transposed) {}

  size_t scratch_bytes(std::span<const Arg> in, std::span<const Arg> out, int threads) const override {
    return kernels::matmul_scratch_bytes(in[0].dims[0], out[0].dims[1], in[0].dims[1], threads);
  }

  Status run(const Call& call) override {
    const Arg &a = call.inputs[0], &b = call.inputs[1], &c = call.outputs[0];
    const int64_t k = a.dims[1], n = c.dims[1];
    if (b.dims[transposed_ ? 1 : 0] != k) {
      return invalid_argument("rows of " + std::to_string(k) + " elements meet a matrix of " +
                              std::to_string(b.dims[transposed_ ? 1 : 0]));
    }
    kernels::MatmulPart part;
    part.b = b.data;
    part.b_transposed = transposed_;
    part.ldb = b.dims[1];
    part.n = n;
    part.c = c.as<float>();
    part.ldc = n;
    if (call.inputs.size() > 2 && call.inputs[2]) {
      if (call.inputs[2].elements != n)
        return invalid_argument("the bias does not have one element for each column");
      part.bias = call.inputs[2].as<const float>();
    }
    kernels::matmul(call.kernels, a.dims[0], k, a.as<const float>(), k, part, call.scratch);
    return ok_status();
  }

 private:
  bool transposed_;
};

std::unique_ptr<Kernel> make(const ir::Node& node) {
  for (size_t i = 0; i < 3; ++i) {
    const ir::Value* v = node.input(i);
    if (v && (v->dtype != DType::kFloat32 || !v->shape)) return nullptr;
  }
  if (node.int_attribute("transA", 0) != 0 || node.float_attribute("alpha", 1.0f) != 1.0f) return nullptr;
  const ir::Value *bias = node.input(2), *out = node.output(0);
  if (bias) {
    // A row that every row of the result gets; other forms broadcast differently.
    const ir::Shape& shape = *bias->shape;
    const bool row = shape.size() == 1 || (shape.size() == 2 && shape[0] == ir::Dim(1));
    if (!row || node.float_attribute("beta", 1.0f) != 1.0f || !out->shape || shape.back() != (*out->shape)[1])
      return nullptr;
  }
  return std::make_unique<Gemm>(node.int_attribute("transB", 0) != 0);
}

}  // namespace

DECANT_KERNEL(Gemm) { return {"Gemm", "", &make}; }

}  // namespace decant::runtime
