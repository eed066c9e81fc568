#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "ir/ops/window.h"

namespace decant::ir {
namespace {

/// Shape of a convolution of input `x` with weights `w` (positions of both among the inputs).
Result<std::optional<Shape>> conv_shape(InferContext& context, size_t x, size_t w) {
  if (!context.shape(x) || !context.shape(w)) return std::optional<Shape>();
  const Shape &in = *context.shape(x), &weights = *context.shape(w);
  if (in.size() < 3 || in.size() != weights.size()) {
    return context.error("needs an input [N, C, ...] and weights [M, C / group, ...] of one rank");
  }
  const Node& node = context.node();
  const int64_t group = node.int_attribute("group", 1);
  if (group < 1) return context.error("group must be at least 1");
  if (in[1].is_constant() && weights[1].is_constant() &&
      (in[1].constant() % group != 0 || in[1].constant() / group != weights[1].constant())) {
    return context.error(fmt::format("{} channels in {} groups meet weights for {}", in[1].constant(), group,
                                     weights[1].constant()));
  }
  Shape out = {in[0], weights[0]};
  auto kernel = kernel_shape(node);
  if (const auto known = constant_shape(weights)) {
    DECANT_ASSIGN(kernel, kernel_of_weights(node, *known));
  }
  if (!kernel) {
    for (size_t i = 2; i < in.size(); ++i) out.push_back(context.fresh_symbol("conv"));
    return std::optional<Shape>(std::move(out));
  }
  if (kernel->size() != in.size() - 2) return context.error("'kernel_shape' does not fit the input's rank");
  DECANT_ASSIGN(const Window window, read_window(node, *kernel));
  for (size_t a = 0; a < window.rank(); ++a) {
    out.push_back(window_outputs(&context.graph(), window, a, in[a + 2]));
    if (out.back().is_constant() && out.back().constant() < 0) {
      return context.error(fmt::format("the kernel does not fit axis {}", a + 2));
    }
  }
  return std::optional<Shape>(std::move(out));
}

Status infer_conv(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_float, "a float tensor"));
  DECANT_RETURN_IF_ERROR(require_same_dtype(context, 0, context.input_count()));
  DECANT_ASSIGN(auto shape, conv_shape(context, 0, 1));
  context.set_output(0, context.dtype(0), std::move(shape));
  return ok_status();
}

struct Problem {
  Window window;
  Dims spatial, out_spatial, dims;
  int64_t batch, groups, in_channels, out_channels;  ///< channels of one group
};

Result<Problem> plan(const Node& node, const Tensor& x, const Tensor& w) {
  if (x.rank() < 3 || x.rank() != w.rank()) {
    return node_error(node, fmt::format("input {} and weights {} do not fit", describe(x), describe(w)));
  }
  Problem p;
  p.groups = node.int_attribute("group", 1);
  const int64_t channels = x.dims()[1], filters = w.dims()[0];
  p.in_channels = w.dims()[1];
  if (p.groups < 1 || channels % p.groups != 0 || channels / p.groups != p.in_channels ||
      filters % p.groups != 0) {
    return node_error(node, fmt::format("input {} and weights {} do not fit {} groups", describe(x),
                                        describe(w), p.groups));
  }
  p.batch = x.dims()[0];
  p.out_channels = filters / p.groups;
  DECANT_ASSIGN(Dims kernel, kernel_of_weights(node, w.dims()));
  DECANT_ASSIGN(p.window, read_window(node, std::move(kernel)));
  p.spatial.assign(x.dims().begin() + 2, x.dims().end());
  DECANT_ASSIGN(p.out_spatial, place(node, p.window, p.spatial));
  p.dims = {p.batch, filters};
  p.dims.insert(p.dims.end(), p.out_spatial.begin(), p.out_spatial.end());
  return p;
}

/// Calls f(flat index of the output, channel, sum) for each output element.
template <typename C, typename F>
void convolve(const Problem& p, const std::vector<C>& x, const std::vector<C>& w, F&& f) {
  const int64_t in_size = product(p.spatial, 0, p.spatial.size());
  const int64_t out_size = product(p.out_spatial, 0, p.out_spatial.size());
  const int64_t taps = product(p.window.kernel, 0, p.window.rank());
  if (out_size == 0 || p.batch == 0) return;
  std::vector<std::pair<int64_t, int64_t>> used;
  Dims index(p.window.rank(), 0);
  for (int64_t position = 0; position < out_size; ++position) {
    used.clear();
    for_each_tap(p.window, p.spatial, index, [&](int64_t at, int64_t tap) { used.emplace_back(at, tap); });
    next_index(index, p.out_spatial);
    for (int64_t n = 0; n < p.batch; ++n) {
      for (int64_t m = 0; m < p.groups * p.out_channels; ++m) {
        const int64_t group = m / p.out_channels;
        C sum = 0;
        for (int64_t c = 0; c < p.in_channels; ++c) {
          const C* from = x.data() + ((n * p.groups + group) * p.in_channels + c) * in_size;
          const C* weights = w.data() + (m * p.in_channels + c) * taps;
          for (const auto& [at, tap] : used) sum += from[at] * weights[tap];
        }
        f((n * p.groups * p.out_channels + m) * out_size + position, m, sum);
      }
    }
  }
}

EvalResult eval_conv(const Node& node, EvalInputs inputs) {
  const Tensor &x = *inputs[0], &w = *inputs[1];
  const Tensor* b = optional_input(inputs, 2);
  if (!is_float(x.dtype()) || w.dtype() != x.dtype() || (b != nullptr && b->dtype() != x.dtype())) {
    return node_error(node, "needs float tensors of one type");
  }
  DECANT_ASSIGN(const Problem p, plan(node, x, w));
  if (b != nullptr && (b->rank() != 1 || b->elements() != w.dims()[0])) {
    return node_error(node, fmt::format("the bias {} does not fit {}", describe(*b), describe(w)));
  }
  DECANT_ASSIGN(Tensor out, Tensor::allocate(x.dtype(), p.dims));
  const std::vector<double> bias = b == nullptr ? std::vector<double>() : read<double>(*b);
  std::vector<double> values(static_cast<size_t>(out.elements()));
  convolve<double>(p, read<double>(x), read<double>(w), [&](int64_t at, int64_t m, double sum) {
    values[static_cast<size_t>(at)] = sum + (bias.empty() ? 0.0 : bias[static_cast<size_t>(m)]);
  });
  write_range<double>(out, 0, std::span<const double>(values));
  return single(std::move(out));
}

bool is_byte(DType t) { return t == DType::kInt8 || t == DType::kUInt8; }

/// x minus its zero point (one), w minus its own (one, or one for each filter).
Result<std::vector<int64_t>> centred(const Node& node, const Tensor& t, const Tensor* zero, int64_t filters) {
  std::vector<int64_t> values = read<int64_t>(t);
  if (zero == nullptr) return values;
  const int64_t count = zero->elements();
  if (zero->dtype() != t.dtype() || (count != 1 && count != filters)) {
    return node_error(node, fmt::format("the zero point {} does not fit {}", describe(*zero), describe(t)));
  }
  const std::vector<int64_t> zeros = read<int64_t>(*zero);
  const size_t each = std::max<size_t>(1, values.size() / static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] -= zeros[count == 1 ? 0 : i / each];
  return values;
}

Status infer_conv_integer(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_byte, "an int8 or uint8 tensor"));
  DECANT_RETURN_IF_ERROR(require_dtype(context, 1, is_byte, "an int8 or uint8 tensor"));
  DECANT_ASSIGN(auto shape, conv_shape(context, 0, 1));
  context.set_output(0, DType::kInt32, std::move(shape));
  return ok_status();
}

EvalResult eval_conv_integer(const Node& node, EvalInputs inputs) {
  const Tensor &x = *inputs[0], &w = *inputs[1];
  if (!is_byte(x.dtype()) || !is_byte(w.dtype())) return node_error(node, "needs int8 or uint8 tensors");
  DECANT_ASSIGN(const Problem p, plan(node, x, w));
  DECANT_ASSIGN(const auto a, centred(node, x, optional_input(inputs, 2), 1));
  DECANT_ASSIGN(const auto b, centred(node, w, optional_input(inputs, 3), w.dims()[0]));
  DECANT_ASSIGN(Tensor out, Tensor::allocate(DType::kInt32, p.dims));
  std::vector<int64_t> values(static_cast<size_t>(out.elements()));
  convolve<int64_t>(p, a, b,
                    [&](int64_t at, int64_t, int64_t sum) { values[static_cast<size_t>(at)] = sum; });
  write_range<int64_t>(out, 0, std::span<const int64_t>(values));
  return single(std::move(out));
}

Status infer_qlinear_conv(InferContext& context) {
  for (size_t i : {0, 3, 7}) {
    DECANT_RETURN_IF_ERROR(require_dtype(context, i, is_byte, "an int8 or uint8 tensor"));
  }
  DECANT_ASSIGN(auto shape, conv_shape(context, 0, 3));
  context.set_output(0, context.dtype(7), std::move(shape));
  return ok_status();
}

/// round((sum + bias) * x_scale * w_scale / y_scale) + y_zero_point, saturated; ties round to even.
EvalResult eval_qlinear_conv(const Node& node, EvalInputs inputs) {
  const Tensor &x = *inputs[0], &w = *inputs[3], &y_zero = *inputs[7];
  const Tensor* b = optional_input(inputs, 8);
  if (!is_byte(x.dtype()) || !is_byte(w.dtype()) || !is_byte(y_zero.dtype())) {
    return node_error(node, "needs int8 or uint8 tensors");
  }
  DECANT_ASSIGN(const Problem p, plan(node, x, w));
  const int64_t filters = w.dims()[0];
  const std::vector<double> x_scale = read<double>(*inputs[1]), w_scale = read<double>(*inputs[4]),
                            y_scale = read<double>(*inputs[6]);
  const auto count = static_cast<int64_t>(w_scale.size());
  if (x_scale.size() != 1 || y_scale.size() != 1 || y_zero.elements() != 1 ||
      (count != 1 && count != filters)) {
    return node_error(node, "scales and zero points must be scalars, or of the weights one for each filter");
  }
  if (b != nullptr && (b->dtype() != DType::kInt32 || b->elements() != filters)) {
    return node_error(node, "the bias must be int32, one for each filter");
  }
  DECANT_ASSIGN(const auto a, centred(node, x, inputs[2], 1));
  DECANT_ASSIGN(const auto weights, centred(node, w, inputs[5], filters));
  const std::vector<int64_t> bias = b == nullptr ? std::vector<int64_t>() : read<int64_t>(*b);
  const IntegerRange range = integer_range(y_zero.dtype());
  const auto zero = static_cast<double>(y_zero.int_at(0));
  DECANT_ASSIGN(Tensor out, Tensor::allocate(y_zero.dtype(), p.dims));
  std::vector<int64_t> values(static_cast<size_t>(out.elements()));
  convolve<int64_t>(p, a, weights, [&](int64_t at, int64_t m, int64_t sum) {
    const auto filter = static_cast<size_t>(m);
    if (!bias.empty()) sum += bias[filter];
    const double scale = x_scale[0] * w_scale[count == 1 ? 0 : filter] / y_scale[0];
    const double value = std::nearbyint(static_cast<double>(sum) * scale) + zero;
    values[static_cast<size_t>(at)] = static_cast<int64_t>(
        std::clamp(value, static_cast<double>(range.min), static_cast<double>(range.max)));
  });
  write_range<int64_t>(out, 0, std::span<const int64_t>(values));
  return single(std::move(out));
}

}  // namespace

DECANT_OP(Conv) {
  return {.name = "Conv",
          .doc = "Convolution over any number of spatial axes; group, strides, dilations, pads",
          .min_inputs = 2,
          .max_inputs = 3,
          .infer = infer_conv,
          .eval = eval_conv};
}

DECANT_OP(ConvInteger) {
  return {.name = "ConvInteger",
          .doc = "8-bit convolution in int32, zero points taken off",
          .min_inputs = 2,
          .max_inputs = 4,
          .infer = infer_conv_integer,
          .eval = eval_conv_integer};
}

DECANT_OP(QLinearConv) {
  return {.name = "QLinearConv",
          .doc = "8-bit convolution, requantized to the output's scale and zero point",
          .min_inputs = 8,
          .max_inputs = 9,
          .infer = infer_qlinear_conv,
          .eval = eval_qlinear_conv};
}

}  // namespace decant::ir
