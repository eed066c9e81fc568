#include <cmath>

#include "kernels/parallel.h"
#include "runtime/kernel.h"

namespace decant::runtime {
namespace {

using ir::Node;

/// What an element costs, in bytes moved: arithmetic only, or a call of the mathematical library.
constexpr double kCheap = 8, kCall = 128;

/// f on each float, in f32; other types stay on the reference kernels.
template <typename F>
std::unique_ptr<Kernel> map_f32(const Node& node, double cost, F f) {
  if (node.input(0)->dtype != DType::kFloat32) return nullptr;
  return kernel_of([cost, f](const Call& call) {
    const auto* x = call.inputs[0].as<const float>();
    auto* y = call.outputs[0].as<float>();
    kernels::for_range(call.kernels, call.inputs[0].elements, cost, 64, [&](int, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[i] = f(x[i]);
    });
    return ok_status();
  });
}

/// max(0, min(1, x)); NaN stays.
float clamp_to_one(float x) { return x < 0 ? 0 : x > 1 ? 1 : x; }

float softplus(float x) { return (x > 0 ? x : 0) + std::log1p(std::exp(-std::fabs(x))); }

std::unique_ptr<Kernel> make_elu(const Node& node) {
  const float alpha = node.float_attribute("alpha", 1.0f);
  return map_f32(node, kCall, [alpha](float x) { return x < 0 ? alpha * std::expm1(x) : x; });
}

std::unique_ptr<Kernel> make_celu(const Node& node) {
  const float alpha = node.float_attribute("alpha", 1.0f);
  if (!(alpha > 0)) return nullptr;
  return map_f32(node, kCall, [alpha](float x) { return x < 0 ? alpha * std::expm1(x / alpha) : x; });
}

std::unique_ptr<Kernel> make_selu(const Node& node) {
  const float alpha = node.float_attribute("alpha", 1.67326319217681884765625f),
              gamma = node.float_attribute("gamma", 1.05070102214813232421875f);
  return map_f32(node, kCall,
                 [alpha, gamma](float x) { return gamma * (x < 0 ? alpha * std::expm1(x) : x); });
}

std::unique_ptr<Kernel> make_leaky_relu(const Node& node) {
  const float alpha = node.float_attribute("alpha", 0.01f);
  return map_f32(node, kCheap, [alpha](float x) { return x < 0 ? alpha * x : x; });
}

std::unique_ptr<Kernel> make_thresholded_relu(const Node& node) {
  const float alpha = node.float_attribute("alpha", 1.0f);
  return map_f32(node, kCheap, [alpha](float x) { return x <= alpha ? 0.0f : x; });
}

std::unique_ptr<Kernel> make_hard_sigmoid(const Node& node) {
  const float alpha = node.float_attribute("alpha", 0.2f), beta = node.float_attribute("beta", 0.5f);
  return map_f32(node, kCheap, [alpha, beta](float x) { return clamp_to_one(alpha * x + beta); });
}

std::unique_ptr<Kernel> make_hard_swish(const Node& node) {
  return map_f32(node, kCheap, [](float x) { return x * clamp_to_one(x * (1.0f / 6) + 0.5f); });
}

std::unique_ptr<Kernel> make_mish(const Node& node) {
  return map_f32(node, 2 * kCall, [](float x) { return x * std::tanh(softplus(x)); });
}

std::unique_ptr<Kernel> make_softplus(const Node& node) {
  return map_f32(node, kCall, [](float x) { return softplus(x); });
}

std::unique_ptr<Kernel> make_softsign(const Node& node) {
  return map_f32(node, kCheap, [](float x) { return x / (1 + std::fabs(x)); });
}

std::unique_ptr<Kernel> make_floor(const Node& node) {
  return map_f32(node, kCheap, [](float x) { return std::floor(x); });
}

std::unique_ptr<Kernel> make_ceil(const Node& node) {
  return map_f32(node, kCheap, [](float x) { return std::ceil(x); });
}

}  // namespace

DECANT_KERNEL(Elu) { return {"Elu", "", &make_elu}; }
DECANT_KERNEL(Celu) { return {"Celu", "", &make_celu}; }
DECANT_KERNEL(Selu) { return {"Selu", "", &make_selu}; }
DECANT_KERNEL(LeakyRelu) { return {"LeakyRelu", "", &make_leaky_relu}; }
DECANT_KERNEL(ThresholdedRelu) { return {"ThresholdedRelu", "", &make_thresholded_relu}; }
DECANT_KERNEL(HardSigmoid) { return {"HardSigmoid", "", &make_hard_sigmoid}; }
DECANT_KERNEL(HardSwish) { return {"HardSwish", "", &make_hard_swish}; }
DECANT_KERNEL(Mish) { return {"Mish", "", &make_mish}; }
DECANT_KERNEL(Softplus) { return {"Softplus", "", &make_softplus}; }
DECANT_KERNEL(Softsign) { return {"Softsign", "", &make_softsign}; }
DECANT_KERNEL(Floor) { return {"Floor", "", &make_floor}; }
DECANT_KERNEL(Ceil) { return {"Ceil", "", &make_ceil}; }

}  // namespace decant::runtime
