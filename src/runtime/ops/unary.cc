#include "runtime/kernel.h"

namespace decant::runtime {
namespace {

using ir::Node;
using kernels::UnaryOp;

template <UnaryOp op>
std::unique_ptr<Kernel> make(const Node& node) {
  if (node.input(0)->dtype != DType::kFloat32) return nullptr;
  return kernel_of([](const Call& call) {
    kernels::unary(call.kernels, op, call.inputs[0].as<const float>(), call.outputs[0].as<float>(),
                   call.inputs[0].elements);
    return ok_status();
  });
}

/// x · sigmoid(α · x).
std::unique_ptr<Kernel> make_swish(const Node& node) {
  const float alpha = node.float_attribute("alpha", 1.0f);
  if (alpha == 1.0f) return make<UnaryOp::kSilu>(node);
  if (alpha == 0.0f) return nullptr;
  if (node.input(0)->dtype != DType::kFloat32) return nullptr;
  return kernel_of([alpha](const Call& call) {
    const auto* x = call.inputs[0].as<const float>();
    auto* y = call.outputs[0].as<float>();
    const int64_t n = call.inputs[0].elements;
    for (int64_t i = 0; i < n; ++i) y[i] = alpha * x[i];
    kernels::unary(call.kernels, UnaryOp::kSilu, y, y, n);
    for (int64_t i = 0; i < n; ++i) y[i] /= alpha;
    return ok_status();
  });
}

std::unique_ptr<Kernel> make_gelu(const Node& node) {
  return node.string_attribute("approximate", "none") == "tanh" ? make<UnaryOp::kGeluTanh>(node)
                                                                : make<UnaryOp::kGeluErf>(node);
}

/// act(gate) * up, with act = x·sigmoid(x).
std::unique_ptr<Kernel> make_swiglu(const Node& node) {
  const ir::Value *gate = node.input(0), *up = node.input(1);
  if (gate->dtype != DType::kFloat32 || up->dtype != DType::kFloat32 ||
      node.float_attribute("alpha", 1.0f) != 1.0f)
    return nullptr;
  if (!gate->shape || !up->shape || *gate->shape != *up->shape || gate->shape->empty()) return nullptr;
  return kernel_of([](const Call& call) {
    const Arg &g = call.inputs[0], &u = call.inputs[1], &y = call.outputs[0];
    const int64_t cols = g.dims[g.rank - 1];
    kernels::gated(call.kernels, UnaryOp::kSilu, cols ? g.elements / cols : 0, cols, g.as<const float>(),
                   cols, u.as<const float>(), cols, y.as<float>(), cols);
    return ok_status();
  });
}

}  // namespace

DECANT_KERNEL(Sigmoid) { return {"Sigmoid", "", &make<UnaryOp::kSigmoid>}; }
DECANT_KERNEL(Tanh) { return {"Tanh", "", &make<UnaryOp::kTanh>}; }
DECANT_KERNEL(Exp) { return {"Exp", "", &make<UnaryOp::kExp>}; }
DECANT_KERNEL(Erf) { return {"Erf", "", &make<UnaryOp::kErf>}; }
DECANT_KERNEL(Relu) { return {"Relu", "", &make<UnaryOp::kRelu>}; }
DECANT_KERNEL(Neg) { return {"Neg", "", &make<UnaryOp::kNeg>}; }
DECANT_KERNEL(Abs) { return {"Abs", "", &make<UnaryOp::kAbs>}; }
DECANT_KERNEL(Sqrt) { return {"Sqrt", "", &make<UnaryOp::kSqrt>}; }
DECANT_KERNEL(Reciprocal) { return {"Reciprocal", "", &make<UnaryOp::kReciprocal>}; }
DECANT_KERNEL(Sin) { return {"Sin", "", &make<UnaryOp::kSin>}; }
DECANT_KERNEL(Cos) { return {"Cos", "", &make<UnaryOp::kCos>}; }
DECANT_KERNEL(Log) { return {"Log", "", &make<UnaryOp::kLog>}; }
DECANT_KERNEL(Swish) { return {"Swish", "", &make_swish}; }
DECANT_KERNEL(Gelu) { return {"Gelu", "", &make_gelu}; }
DECANT_KERNEL(SwiGLU) { return {"SwiGLU", "", &make_swiglu}; }

}  // namespace decant::runtime
