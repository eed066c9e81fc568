#include <cmath>

#include <fmt/format.h>

#include "ir/ops/window.h"

namespace decant::ir {
namespace {

Status infer_deform_conv(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_float, "a float tensor"));
  DECANT_RETURN_IF_ERROR(require_same_dtype(context, 0, context.input_count()));
  for (size_t i : {0, 1, 2, 4}) DECANT_RETURN_IF_ERROR(require_rank(context, i, 4));
  std::optional<Shape> shape;
  if (context.shape(0) && context.shape(1) && context.shape(2)) {
    const Shape& offsets = *context.shape(2);
    shape = Shape{(*context.shape(0))[0], (*context.shape(1))[0], offsets[2], offsets[3]};
  }
  context.set_output(0, context.dtype(0), std::move(shape));
  return ok_status();
}

/// Bilinear value of a plane; 0 outside.
double sample(const double* plane, int64_t height, int64_t width, double y, double x) {
  if (!(y > -1 && x > -1 && y < static_cast<double>(height) && x < static_cast<double>(width))) return 0;
  const auto y0 = static_cast<int64_t>(std::floor(y)), x0 = static_cast<int64_t>(std::floor(x));
  const double ly = y - static_cast<double>(y0), lx = x - static_cast<double>(x0);
  const auto at = [&](int64_t r, int64_t c) {
    return r >= 0 && r < height && c >= 0 && c < width ? plane[r * width + c] : 0.0;
  };
  return (1 - ly) * ((1 - lx) * at(y0, x0) + lx * at(y0, x0 + 1)) +
         ly * ((1 - lx) * at(y0 + 1, x0) + lx * at(y0 + 1, x0 + 1));
}

/// Dai et al. 2017, with the modulation of Zhu et al. 2019: each tap reads at its own offset, times its mask.
EvalResult eval_deform_conv(const Node& node, EvalInputs inputs) {
  const Tensor &x = *inputs[0], &w = *inputs[1], &offset = *inputs[2];
  const Tensor *b = optional_input(inputs, 3), *mask = optional_input(inputs, 4);
  if (!is_float(x.dtype()) || x.rank() != 4 || w.rank() != 4)
    return node_error(node, "needs float tensors of rank 4");
  DECANT_ASSIGN(Dims kernel, kernel_of_weights(node, w.dims()));
  DECANT_ASSIGN(Window window, read_window(node, std::move(kernel)));
  const int64_t height = x.dims()[2], width = x.dims()[3];
  DECANT_ASSIGN(const Dims out_spatial, place(node, window, Dims{height, width}));
  const int64_t groups = node.int_attribute("group", 1),
                offset_groups = node.int_attribute("offset_group", 1);
  const int64_t batch = x.dims()[0], channels = x.dims()[1], filters = w.dims()[0], each = w.dims()[1];
  if (groups < 1 || offset_groups < 1 || channels % groups != 0 || channels / groups != each ||
      filters % groups != 0 || channels % offset_groups != 0) {
    return node_error(node, fmt::format("{} and {} do not fit {} groups", describe(x), describe(w), groups));
  }
  const int64_t taps = window.kernel[0] * window.kernel[1], rows = out_spatial[0], columns = out_spatial[1];
  if (taps > (int64_t{1} << 30) || offset_groups > (int64_t{1} << 30))
    return node_error(node, "the kernel is too large");
  if (offset.dims() != Dims{batch, offset_groups * taps * 2, rows, columns} ||
      (mask != nullptr && mask->dims() != Dims{batch, offset_groups * taps, rows, columns}) ||
      (b != nullptr && b->dims() != Dims{filters})) {
    return node_error(node, "the offset, the mask or the bias does not fit the output");
  }
  DECANT_ASSIGN(Tensor out, Tensor::allocate(x.dtype(), {batch, filters, rows, columns}));
  const std::vector<double> in = read<double>(x), weights = read<double>(w), shifts = read<double>(offset);
  const std::vector<double> factors = mask == nullptr ? std::vector<double>() : read<double>(*mask);
  std::vector<double> values(static_cast<size_t>(out.elements()));
  const int64_t size = rows * columns;
  std::vector<double> sampled(static_cast<size_t>(channels * taps));
  for (int64_t n = 0; n < batch; ++n) {
    for (int64_t p = 0; p < size; ++p) {
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t group = n * offset_groups + c / (channels / offset_groups);
        for (int64_t t = 0; t < taps; ++t) {
          const auto shift = [&](int64_t part) {
            return shifts[static_cast<size_t>(((group * taps + t) * 2 + part) * size + p)];
          };
          const int64_t y =
              p / columns * window.strides[0] - window.begin[0] + t / window.kernel[1] * window.dilations[0];
          const int64_t at =
              p % columns * window.strides[1] - window.begin[1] + t % window.kernel[1] * window.dilations[1];
          double value = sample(in.data() + (n * channels + c) * height * width, height, width,
                                static_cast<double>(y) + shift(0), static_cast<double>(at) + shift(1));
          if (!factors.empty()) value *= factors[static_cast<size_t>((group * taps + t) * size + p)];
          sampled[static_cast<size_t>(c * taps + t)] = value;
        }
      }
      for (int64_t m = 0; m < filters; ++m) {
        double sum = b == nullptr ? 0 : b->double_at(m);
        const double* from = sampled.data() + m / (filters / groups) * each * taps;
        for (int64_t i = 0; i < each * taps; ++i)
          sum += weights[static_cast<size_t>(m * each * taps + i)] * from[i];
        values[static_cast<size_t>((n * filters + m) * size + p)] = sum;
      }
    }
  }
  write_range<double>(out, 0, std::span<const double>(values));
  return single(std::move(out));
}

}  // namespace

DECANT_OP(DeformConv) {
  return {.name = "DeformConv",
          .doc = "2-D convolution whose taps read at given offsets, with an optional mask",
          .min_inputs = 3,
          .max_inputs = 5,
          .infer = infer_deform_conv,
          .eval = eval_deform_conv};
}

}  // namespace decant::ir
