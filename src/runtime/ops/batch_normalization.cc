#include <cmath>

#include "runtime/kernel.h"

namespace decant::runtime {
namespace {

/// Scales and shifts planes by channels; what it takes off is computed anew in each call, a handful of
/// numbers.
class BatchNormalization final : public Kernel {
 public:
  explicit BatchNormalization(float epsilon) : epsilon_(epsilon) {}

  Status run(const Call& call) override {
    const Arg &x = call.inputs[0], &y = call.outputs[0];
    const int64_t channels = x.dims[1];
    for (size_t i = 1; i < 5; ++i) {
      if (call.inputs[i].elements != channels) {
        return invalid_argument("input " + std::to_string(i) + " has " +
                                std::to_string(call.inputs[i].elements) + " elements for " +
                                std::to_string(channels) + " channels");
      }
    }
    const auto *scale = call.inputs[1].as<const float>(), *bias = call.inputs[2].as<const float>();
    const auto *mean = call.inputs[3].as<const float>(), *variance = call.inputs[4].as<const float>();
    const int64_t planes = x.dims[0] * channels, size = planes == 0 ? 0 : x.elements / planes;
    for (int64_t p = 0; p < planes; ++p) {
      const int64_t c = p % channels;
      const float factor = scale[c] / std::sqrt(variance[c] + epsilon_);
      const float* from = x.as<const float>() + p * size;
      float* to = y.as<float>() + p * size;
      for (int64_t i = 0; i < size; ++i) to[i] = (from[i] - mean[c]) * factor + bias[c];
    }
    return ok_status();
  }

 private:
  float epsilon_;
};

std::unique_ptr<Kernel> make(const ir::Node& node) {
  for (size_t i = 0; i < 5; ++i) {
    if (node.input(i)->dtype != DType::kFloat32) return nullptr;
  }
  const ir::Value* x = node.input(0);
  if (!x->shape || x->shape->size() < 2 || node.int_attribute("training_mode", 0) != 0) return nullptr;
  return std::make_unique<BatchNormalization>(node.float_attribute("epsilon", 1e-5f));
}

}  // namespace

DECANT_KERNEL(BatchNormalization) { return {"BatchNormalization", "", &make}; }

}  // namespace decant::runtime
