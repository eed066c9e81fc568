#include "runtime/ops/matmul.h"

#include <algorithm>
#include <array>

#include "ir/packed_constant.h"

namespace decant::runtime {
namespace {

using ir::Node;

bool is_weight_dtype(DType t) {
  return t == DType::kFloat32 || t == DType::kFloat16 || t == DType::kBFloat16;
}

bool transposed_b(const Node& node) { return node.int_attribute("transB", 0) != 0; }

/// Inference leaves symbolic inner dims to the run.
Status check_inner(const Arg& a, const Arg& b, bool transposed) {
  const int64_t k = a.dims[a.rank - 1], inner = b.dims[b.rank - (transposed ? 1 : 2)];
  if (k == inner) return ok_status();
  return invalid_argument("rows of " + std::to_string(k) + " elements meet a matrix of " +
                          std::to_string(inner));
}

/// A·B (+ bias) for constant matrices B that share A: leading dims of A are rows. Operands: A, each B, each
/// bias.
class WeightMatmul final : public Kernel {
 public:
  explicit WeightMatmul(std::vector<bool> transposed) : transposed_(std::move(transposed)) {}

  size_t scratch_bytes(std::span<const Arg> in, std::span<const Arg> out, int threads) const override {
    int64_t n = 0;
    for (const Arg& c : out) n = std::max(n, c.dims[c.rank - 1]);
    const int64_t k = in[0].dims[in[0].rank - 1];
    return kernels::matmul_scratch_bytes(k ? in[0].elements / k : 0, n, k, threads);
  }

  Status run(const Call& call) override {
    const Arg& a = call.inputs[0];
    const int64_t k = a.dims[a.rank - 1];
    const int64_t m = k ? a.elements / k : 0;
    std::array<kernels::MatmulPart, kernels::kMaxMatmulParts> parts;
    for (size_t i = 0; i < transposed_.size(); ++i) {
      const Arg& b = call.inputs[i + 1];
      const Arg& c = call.outputs[i];
      DECANT_RETURN_IF_ERROR(check_inner(a, b, transposed_[i]));
      kernels::MatmulPart& part = parts[i];
      part.b = b.data;
      part.b_dtype = b.dtype;
      part.b_transposed = transposed_[i];
      part.ldb = b.dims[1];
      part.n = c.dims[c.rank - 1];
      part.c = c.as<float>();
      part.ldc = part.n;
      const size_t bias = 1 + transposed_.size() + i;
      if (bias < call.inputs.size() && call.inputs[bias]) {
        if (call.inputs[bias].elements != part.n)
          return invalid_argument("the bias does not have a row's elements");
        part.bias = call.inputs[bias].as<const float>();
      }
    }
    kernels::matmul_group(call.kernels, m, k, a.as<const float>(), k, {parts.data(), transposed_.size()},
                          call.scratch);
    return ok_status();
  }

 private:
  std::vector<bool> transposed_;
};

/// The same with packed weights.
class LowBitMatmul final : public Kernel {
 public:
  LowBitMatmul(std::vector<std::shared_ptr<const kernels::LowBitMatrix>> weights,
               kernels::Precision precision)
      : weights_(std::move(weights)), precision_(precision) {}

  size_t scratch_bytes(std::span<const Arg> in, std::span<const Arg>, int threads) const override {
    const int64_t k = in[0].dims[in[0].rank - 1];
    return kernels::low_bit_scratch_bytes(k ? in[0].elements / k : 0, k, threads);
  }

  Status run(const Call& call) override {
    const Arg& a = call.inputs[0];
    const int64_t k = a.dims[a.rank - 1];
    std::array<kernels::LowBitPart, kernels::kMaxMatmulParts> parts;
    for (size_t i = 0; i < weights_.size(); ++i) {
      const LowBitForm& form = weights_[i]->form;
      if (k != form.columns) {
        return invalid_argument("rows of " + std::to_string(k) + " elements meet a matrix of " +
                                std::to_string(form.columns));
      }
      kernels::LowBitPart& part = parts[i];
      part.weights = weights_[i].get();
      part.c = call.outputs[i].as<float>();
      part.ldc = form.rows;
      const size_t bias = 1 + weights_.size() + i;
      if (bias < call.inputs.size() && call.inputs[bias]) {
        if (call.inputs[bias].elements != form.rows)
          return invalid_argument("the bias does not have a row's elements");
        part.bias = call.inputs[bias].as<const float>();
      }
    }
    kernels::low_bit_matmul(call.kernels, precision_, k ? a.elements / k : 0, a.as<const float>(), k,
                            {parts.data(), weights_.size()}, call.scratch);
    return ok_status();
  }

 private:
  std::vector<std::shared_ptr<const kernels::LowBitMatrix>> weights_;
  kernels::Precision precision_;
};

/// Batched f32 product with broadcast leading dims; operands of rank 2 and more.
class BatchedMatmul final : public Kernel {
 public:
  explicit BatchedMatmul(bool transposed) : transposed_(transposed) {}

  size_t scratch_bytes(std::span<const Arg> in, std::span<const Arg> out, int threads) const override {
    const Arg &a = in[0], &c = out[0];
    return kernels::matmul_scratch_bytes(a.dims[a.rank - 2], c.dims[c.rank - 1], a.dims[a.rank - 1], threads);
  }

  Status run(const Call& call) override {
    const Arg &a = call.inputs[0], &b = call.inputs[1], &c = call.outputs[0];
    const int64_t m = a.dims[a.rank - 2], k = a.dims[a.rank - 1], n = c.dims[c.rank - 1];
    DECANT_RETURN_IF_ERROR(check_inner(a, b, transposed_));
    const int batch_rank = c.rank - 2;
    int64_t batches = 1;
    for (int i = 0; i < batch_rank; ++i) batches *= c.dims[i];
    for (int64_t batch = 0; batch < batches; ++batch) {
      kernels::MatmulPart part;
      part.b = b.as<const float>() + matrix_index(b, c, batch) * k * n;
      part.b_transposed = transposed_;
      part.ldb = transposed_ ? k : n;
      part.n = n;
      part.c = c.as<float>() + batch * m * n;
      part.ldc = n;
      kernels::matmul(call.kernels, m, k, a.as<const float>() + matrix_index(a, c, batch) * m * k, k, part,
                      call.scratch);
    }
    return ok_status();
  }

 private:
  /// Which matrix of a broadcast operand the output's flat batch index reads.
  static int64_t matrix_index(const Arg& x, const Arg& c, int64_t batch) {
    int64_t index = 0, stride = 1;
    const int offset = c.rank - x.rank;
    for (int axis = c.rank - 3; axis >= 0; --axis) {
      const int64_t position = batch % c.dims[axis];
      batch /= c.dims[axis];
      if (axis < offset) continue;
      const int64_t dim = x.dims[axis - offset];
      if (dim != 1) index += position * stride;
      stride *= dim;
    }
    return index;
  }

  bool transposed_;
};

std::unique_ptr<Kernel> make(const Node& node) {
  if (matmul_can_group(node)) return std::make_unique<WeightMatmul>(std::vector<bool>{transposed_b(node)});
  const ir::Value *a = node.input(0), *b = node.input(1);
  if (a->dtype != DType::kFloat32 || b->dtype != DType::kFloat32) return nullptr;
  if (!a->shape || !b->shape || a->shape->size() < 2 || b->shape->size() < 2) return nullptr;
  if (node.int_attribute("transA", 0) != 0 || node.float_attribute("alpha", 1.0f) != 1.0f) return nullptr;
  return std::make_unique<BatchedMatmul>(transposed_b(node));
}

}  // namespace

bool matmul_can_group(const Node& node) {
  const bool fused = node.op() == "FusedMatMul" && node.domain() == "com.microsoft";
  if (!node.is("MatMul") && !fused) return false;
  const ir::Value *a = node.input(0), *b = node.input(1);
  return a && b && b->constant && a->dtype == DType::kFloat32 && is_weight_dtype(b->dtype) &&
         b->constant->dims().size() == 2 && a->shape && !a->shape->empty() &&
         node.int_attribute("transA", 0) == 0 && node.float_attribute("alpha", 1.0f) == 1.0f;
}

const Node* matmul_bias(const ir::Graph& graph, const Node& node) {
  const ir::Value* product = node.output(0);
  if (!matmul_can_group(node) || product->users().size() != 1 || graph.is_output(product)) return nullptr;
  const Node* add = product->users()[0];
  if (!add->is("Add") || !product->shape || !add->output(0) || !add->output(0)->shape) return nullptr;
  const ir::Value* bias = bias_of(*add, product);
  if (!bias || !bias->constant || bias->dtype != DType::kFloat32 || bias->constant->dims().size() != 1)
    return nullptr;
  if (ir::Dim(bias->constant->dims()[0]) != product->shape->back()) return nullptr;
  return *add->output(0)->shape == *product->shape ? add : nullptr;
}

const ir::Value* bias_of(const Node& add, const ir::Value* product) {
  return add.input(0) == product ? add.input(1) : add.input(0);
}

std::unique_ptr<Kernel> make_matmul_group(const std::vector<const Node*>& nodes) {
  std::vector<bool> transposed;
  for (const Node* node : nodes) transposed.push_back(transposed_b(*node));
  return std::make_unique<WeightMatmul>(std::move(transposed));
}

std::unique_ptr<LowBitRows> low_bit_weights(const Node& node) {
  if (!matmul_can_group(node)) return nullptr;
  return ir::low_bit_weights(*node.input(1)->constant, !transposed_b(node));
}

std::unique_ptr<Kernel> make_low_bit_group(std::vector<std::shared_ptr<const kernels::LowBitMatrix>> weights,
                                           kernels::Precision precision) {
  return std::make_unique<LowBitMatmul>(std::move(weights), precision);
}

DECANT_KERNEL(MatMul) { return {"MatMul", "", &make}; }
DECANT_KERNEL(FusedMatMul) { return {"FusedMatMul", "com.microsoft", &make}; }

}  // namespace decant::runtime
