#include "runtime/kernel.h"

namespace decant::runtime {
namespace {

using ir::Node;

/// Norm kernels take the last axis, f32 rows and an f32 weight vector.
bool last_axis_f32(const Node& node) {
  const ir::Value *x = node.input(0), *weight = node.input(1);
  if (!x->shape || x->shape->empty() || x->dtype != DType::kFloat32) return false;
  const int64_t axis = node.int_attribute("axis", -1);
  if (axis != -1 && axis != static_cast<int64_t>(x->shape->size()) - 1) return false;
  for (size_t i = 1; i < node.outputs().size(); ++i) {
    if (node.output(i)) return false;
  }
  return weight && weight->dtype == DType::kFloat32 && weight->shape && weight->shape->size() == 1;
}

std::unique_ptr<Kernel> make_rms(const Node& node) {
  if (!last_axis_f32(node)) return nullptr;
  const float eps = node.float_attribute("epsilon", 1e-5f);
  return kernel_of([eps](const Call& call) {
    const Arg &x = call.inputs[0], &w = call.inputs[1], &y = call.outputs[0];
    const int64_t cols = x.dims[x.rank - 1];
    if (w.elements != cols)
      return invalid_argument("the weight has " + std::to_string(w.elements) + " elements for rows of " +
                              std::to_string(cols));
    kernels::RmsNormArgs args;
    args.rows = cols ? x.elements / cols : 0;
    args.cols = cols;
    args.x = x.as<const float>();
    args.ldx = args.ldy = cols;
    args.weight = w.as<const float>();
    args.eps = eps;
    args.y = y.as<float>();
    kernels::rms_norm(call.kernels, args);
    return ok_status();
  });
}

std::unique_ptr<Kernel> make_layer(const Node& node) {
  if (!last_axis_f32(node) || (node.input(2) && node.input(2)->dtype != DType::kFloat32)) return nullptr;
  const float eps = node.float_attribute("epsilon", 1e-5f);
  return kernel_of([eps](const Call& call) {
    const Arg &x = call.inputs[0], &w = call.inputs[1], &y = call.outputs[0];
    const Arg* b = call.inputs.size() > 2 && call.inputs[2] ? &call.inputs[2] : nullptr;
    const float* bias = b ? b->as<const float>() : nullptr;
    const int64_t cols = x.dims[x.rank - 1];
    if (w.elements != cols || (b && b->elements != cols))
      return invalid_argument("weight or bias do not have the " + std::to_string(cols) +
                              " elements of a row");
    kernels::layer_norm(call.kernels, cols ? x.elements / cols : 0, cols, x.as<const float>(), cols,
                        w.as<const float>(), bias, eps, y.as<float>(), cols);
    return ok_status();
  });
}

}  // namespace

DECANT_KERNEL(RMSNormalization) { return {"RMSNormalization", "", &make_rms}; }
DECANT_KERNEL(LayerNormalization) { return {"LayerNormalization", "", &make_layer}; }

}  // namespace decant::runtime
