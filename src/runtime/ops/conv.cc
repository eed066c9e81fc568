#include "kernels/conv.h"

#include "ir/ops/window.h"
#include "runtime/kernel.h"

namespace decant::runtime {
namespace {

using ir::Node;
using ir::Window;

/// The window over two axes; one axis becomes the second of a height of 1.
struct Window2 {
  explicit Window2(const Window& window) : w(window), one_axis(window.rank() == 1) {}

  Window w;
  bool one_axis;

  int64_t of(const ir::Dims& list, size_t axis, int64_t fallback) const {
    if (one_axis) return axis == 0 ? fallback : list[0];
    return list[axis];
  }
  /// Padding before an axis of `in` positions, `out` of the result.
  int64_t before(size_t axis, int64_t in, int64_t out) const {
    if (one_axis && axis == 0) return 0;
    const size_t a = one_axis ? 0 : axis;
    const bool upper = w.auto_pad == Window::AutoPad::kSameUpper;
    if (!upper && w.auto_pad != Window::AutoPad::kSameLower) return w.begin[a];
    const int64_t total = std::max<int64_t>(0, (out - 1) * w.strides[a] + w.extent(a) - in);
    return upper ? total / 2 : total - total / 2;
  }

  template <typename Args>
  void set(Args& args, const Arg& x, const Arg& y) const {
    args.height = one_axis ? 1 : x.dims[2];
    args.width = x.dims[x.rank - 1];
    args.out_height = one_axis ? 1 : y.dims[2];
    args.out_width = y.dims[y.rank - 1];
    args.kernel_h = of(w.kernel, 0, 1);
    args.kernel_w = of(w.kernel, 1, 1);
    args.stride_h = of(w.strides, 0, 1);
    args.stride_w = of(w.strides, 1, 1);
    args.dilation_h = of(w.dilations, 0, 1);
    args.dilation_w = of(w.dilations, 1, 1);
    args.pad_top = before(0, args.height, args.out_height);
    args.pad_left = before(1, args.width, args.out_width);
  }
};

class ConvKernel final : public Kernel {
 public:
  ConvKernel(Window2 window, int64_t groups) : window_(std::move(window)), groups_(groups) {}

  size_t scratch_bytes(std::span<const Arg> in, std::span<const Arg> out, int threads) const override {
    return kernels::conv_scratch_bytes(args_of(in, out), threads);
  }

  Status run(const Call& call) override {
    const kernels::ConvArgs args = args_of(call.inputs, call.outputs);
    const Arg &x = call.inputs[0], &w = call.inputs[1], &y = call.outputs[0];
    const int64_t filters = w.dims[0];
    if (x.dims[1] != groups_ * w.dims[1] || y.dims[1] != filters || filters % groups_ != 0) {
      return invalid_argument(std::to_string(x.dims[1]) + " channels meet weights for " +
                              std::to_string(groups_ * w.dims[1]));
    }
    if (args.bias && call.inputs[2].elements != filters) {
      return invalid_argument("the bias has " + std::to_string(call.inputs[2].elements) + " elements for " +
                              std::to_string(filters) + " filters");
    }
    kernels::conv(call.kernels, args, call.scratch);
    return ok_status();
  }

 private:
  kernels::ConvArgs args_of(std::span<const Arg> in, std::span<const Arg> out) const {
    const Arg &x = in[0], &w = in[1];
    kernels::ConvArgs args;
    args.batch = x.dims[0];
    args.groups = groups_;
    args.in_channels = w.dims[1];
    args.out_channels = w.dims[0] / groups_;
    window_.set(args, x, out[0]);
    args.x = x.as<const float>();
    args.weights = w.as<const float>();
    args.bias = in.size() > 2 && in[2] ? in[2].as<const float>() : nullptr;
    args.y = out[0].as<float>();
    return args;
  }

  Window2 window_;
  int64_t groups_;
};

bool is_f32(const ir::Value* v) { return v == nullptr || v->dtype == DType::kFloat32; }

bool has_two_axes_at_most(const ir::Value* x) {
  return x->shape && (x->shape->size() == 3 || x->shape->size() == 4);
}

std::unique_ptr<Kernel> make_conv(const Node& node) {
  const ir::Value *x = node.input(0), *w = node.input(1);
  if (!is_f32(x) || !is_f32(w) || !is_f32(node.input(2)) || !has_two_axes_at_most(x) || !w->shape)
    return nullptr;
  const auto dims = ir::constant_shape(*w->shape);
  const int64_t groups = node.int_attribute("group", 1);
  if (!dims || dims->size() != x->shape->size() || groups < 1) return nullptr;
  auto kernel = ir::kernel_of_weights(node, *dims);
  if (!kernel.ok()) return nullptr;
  auto window = ir::read_window(node, *std::move(kernel));
  if (!window.ok()) return nullptr;
  return std::make_unique<ConvKernel>(Window2(*window), groups);
}

std::unique_ptr<Kernel> make_pool(const Node& node, bool max) {
  const ir::Value* x = node.input(0);
  const auto kernel = ir::kernel_shape(node);
  if (!is_f32(x) || !has_two_axes_at_most(x) || !kernel || node.output(1) != nullptr) return nullptr;
  auto window = ir::read_window(node, *kernel);
  if (!window.ok() || window->rank() + 2 != x->shape->size()) return nullptr;
  const bool same =
      window->auto_pad == Window::AutoPad::kSameUpper || window->auto_pad == Window::AutoPad::kSameLower;
  const bool count_padding = node.int_attribute("count_include_pad", 0) != 0;
  if (count_padding && same) return nullptr;
  return kernel_of([w = Window2(*window), max, count_padding](const Call& call) {
    const Arg &in = call.inputs[0], &out = call.outputs[0];
    kernels::PoolArgs args;
    args.planes = in.dims[0] * in.dims[1];
    w.set(args, in, out);
    args.count_padding = count_padding;
    args.pad_bottom = w.of(w.w.end, 0, 0);
    args.pad_right = w.of(w.w.end, 1, 0);
    args.x = in.as<const float>();
    args.y = out.as<float>();
    if (max)
      kernels::max_pool(call.kernels, args);
    else
      kernels::average_pool(call.kernels, args);
    return ok_status();
  });
}

std::unique_ptr<Kernel> make_max_pool(const Node& node) { return make_pool(node, true); }
std::unique_ptr<Kernel> make_average_pool(const Node& node) { return make_pool(node, false); }

/// All spatial axes are one window.
std::unique_ptr<Kernel> make_global(const Node& node, bool max) {
  const ir::Value* x = node.input(0);
  if (!is_f32(x) || !x->shape || x->shape->size() < 3) return nullptr;
  return kernel_of([max](const Call& call) -> Status {
    const Arg& in = call.inputs[0];
    kernels::PoolArgs args;
    args.planes = call.outputs[0].elements;
    args.height = args.out_height = args.out_width = 1;
    args.width = args.planes == 0 ? 0 : in.elements / args.planes;
    if (args.planes > 0 && args.width == 0) return invalid_argument("the spatial dims have no elements");
    args.kernel_w = args.width;
    args.x = in.as<const float>();
    args.y = call.outputs[0].as<float>();
    if (max)
      kernels::max_pool(call.kernels, args);
    else
      kernels::average_pool(call.kernels, args);
    return ok_status();
  });
}

std::unique_ptr<Kernel> make_global_max(const Node& node) { return make_global(node, true); }
std::unique_ptr<Kernel> make_global_average(const Node& node) { return make_global(node, false); }

}  // namespace

DECANT_KERNEL(Conv) { return {"Conv", "", &make_conv}; }
DECANT_KERNEL(MaxPool) { return {"MaxPool", "", &make_max_pool}; }
DECANT_KERNEL(AveragePool) { return {"AveragePool", "", &make_average_pool}; }
DECANT_KERNEL(GlobalMaxPool) { return {"GlobalMaxPool", "", &make_global_max}; }
DECANT_KERNEL(GlobalAveragePool) { return {"GlobalAveragePool", "", &make_global_average}; }

}  // namespace decant::runtime
