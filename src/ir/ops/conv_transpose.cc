#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "ir/ops/window.h"

namespace decant::ir {
namespace {

/// The attributes that say how large the output is, one entry for each spatial axis; empty when not given.
struct OutputRule {
  Dims padding, shape;
};

Result<OutputRule> read_rule(const Node& node, size_t rank) {
  OutputRule rule;
  rule.padding = Dims(rank, 0);
  if (const auto* list = node.attribute<std::vector<int64_t>>("output_padding"); list && !list->empty()) {
    rule.padding = *list;
  }
  if (const auto* list = node.attribute<std::vector<int64_t>>("output_shape")) rule.shape = *list;
  // Some exporters give the whole shape, batch and channels included.
  if (rule.shape.size() == rank + 2) rule.shape.erase(rule.shape.begin(), rule.shape.begin() + 2);
  if (rule.padding.size() != rank || (!rule.shape.empty() && rule.shape.size() != rank)) {
    return node_error(node, "'output_padding' or 'output_shape' does not fit the input's rank");
  }
  for (const Dims* list : {&rule.padding, &rule.shape}) {
    for (int64_t v : *list) {
      if (v < 0 || v > (int64_t{1} << 40)) return node_error(node, fmt::format("an output size of {}", v));
    }
  }
  return rule;
}

bool is_same(const Window& w) {
  return w.auto_pad == Window::AutoPad::kSameUpper || w.auto_pad == Window::AutoPad::kSameLower;
}

/// Positions that the kernels of `input` positions cover, before padding is cut off.
Dim covered(const Window& w, const OutputRule& rule, size_t a, const Dim& input) {
  return (input - Dim(1)) * Dim(w.strides[a]) + Dim(w.extent(a) + rule.padding[a]);
}

Dim output_size(const Window& w, const OutputRule& rule, size_t a, const Dim& input) {
  if (!rule.shape.empty()) return Dim(rule.shape[a]);
  if (is_same(w)) return input * Dim(w.strides[a]);
  return covered(w, rule, a, input) - Dim(w.begin[a] + w.end[a]);
}

Status infer_conv_transpose(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_float, "a float tensor"));
  DECANT_RETURN_IF_ERROR(require_same_dtype(context, 0, context.input_count()));
  const Node& node = context.node();
  if (!context.shape(0) || !context.shape(1)) {
    context.set_output(0, context.dtype(0), std::nullopt);
    return ok_status();
  }
  const Shape &in = *context.shape(0), &weights = *context.shape(1);
  if (in.size() < 3 || in.size() != weights.size()) {
    return context.error("needs an input [N, C, ...] and weights [C, M / group, ...] of one rank");
  }
  const int64_t group = node.int_attribute("group", 1);
  if (group < 1) return context.error("group must be at least 1");
  DECANT_ASSIGN([[maybe_unused]] const Dim channels, merge_dims(context, in[1], weights[0]));
  Shape out = {in[0], weights[1] * Dim(group)};
  auto kernel = kernel_shape(node);
  if (const auto known = constant_shape(weights)) {
    DECANT_ASSIGN(kernel, kernel_of_weights(node, *known));
  }
  if (!kernel) {
    for (size_t i = 2; i < in.size(); ++i) out.push_back(context.fresh_symbol("conv"));
  } else {
    if (kernel->size() != in.size() - 2) return context.error("'kernel_shape' does not fit the input's rank");
    DECANT_ASSIGN(const Window window, read_window(node, *kernel));
    DECANT_ASSIGN(const OutputRule rule, read_rule(node, window.rank()));
    for (size_t a = 0; a < window.rank(); ++a) {
      out.push_back(output_size(window, rule, a, in[a + 2]));
      if (out.back().is_constant() && out.back().constant() < 0)
        return context.error("the pads leave no output");
    }
  }
  context.set_output(0, context.dtype(0), std::move(out));
  return ok_status();
}

EvalResult eval_conv_transpose(const Node& node, EvalInputs inputs) {
  const Tensor &x = *inputs[0], &w = *inputs[1];
  const Tensor* b = optional_input(inputs, 2);
  if (!is_float(x.dtype()) || w.dtype() != x.dtype() || (b != nullptr && b->dtype() != x.dtype())) {
    return node_error(node, "needs float tensors of one type");
  }
  const int64_t groups = node.int_attribute("group", 1);
  if (x.rank() < 3 || x.rank() != w.rank() || x.dims()[1] != w.dims()[0] || groups < 1 ||
      w.dims()[0] % groups != 0) {
    return node_error(node, fmt::format("input {} and weights {} do not fit", describe(x), describe(w)));
  }
  DECANT_ASSIGN(Dims kernel, kernel_of_weights(node, w.dims()));
  DECANT_ASSIGN(Window window, read_window(node, std::move(kernel)));
  DECANT_ASSIGN(const OutputRule rule, read_rule(node, window.rank()));
  const int64_t channels = x.dims()[1] / groups, filters = w.dims()[1];
  if (filters > (int64_t{1} << 40) / groups) return node_error(node, "too many groups");
  const Dims spatial(x.dims().begin() + 2, x.dims().end());
  Dims dims = {x.dims()[0], filters * groups}, out_spatial;
  for (size_t a = 0; a < window.rank(); ++a) {
    const auto size = output_size(window, rule, a, Dim(spatial[a])).as_constant();
    const auto all = covered(window, rule, a, Dim(spatial[a])).as_constant();
    if (!size || *size < 0 || !all) return node_error(node, "the pads leave no output");
    out_spatial.push_back(*size);
    dims.push_back(*size);
    if (!is_same(window) && rule.shape.empty()) continue;
    // Only SAME_UPPER puts the odd position at the end.
    const int64_t total = std::max<int64_t>(0, *all - *size);
    const bool upper = window.auto_pad == Window::AutoPad::kSameUpper;
    window.begin[a] = upper ? total / 2 : total - total / 2;
  }
  if (b != nullptr && (b->rank() != 1 || b->elements() != dims[1])) {
    return node_error(node, fmt::format("the bias {} does not fit {}", describe(*b), describe(w)));
  }
  DECANT_ASSIGN(Tensor out, Tensor::allocate(x.dtype(), dims));
  std::vector<double> values(static_cast<size_t>(out.elements()), 0.0);
  const std::vector<double> in = read<double>(x), weights = read<double>(w);
  const int64_t in_size = product(spatial, 0, spatial.size()),
                out_size = product(out_spatial, 0, out_spatial.size());
  const int64_t taps = product(window.kernel, 0, window.rank());
  Dims index(window.rank(), 0);
  for (int64_t position = 0; position < in_size && x.elements() > 0; ++position, next_index(index, spatial)) {
    for_each_tap(window, out_spatial, index, [&](int64_t at, int64_t tap) {
      for (int64_t plane = 0; plane < x.dims()[0] * x.dims()[1]; ++plane) {
        const int64_t channel = plane % x.dims()[1], group = channel / channels;
        const double value = in[static_cast<size_t>(plane * in_size + position)];
        double* to = values.data() + (plane / x.dims()[1] * dims[1] + group * filters) * out_size + at;
        for (int64_t m = 0; m < filters; ++m) {
          to[m * out_size] += value * weights[static_cast<size_t>((channel * filters + m) * taps + tap)];
        }
      }
    });
  }
  if (b != nullptr) {
    for (int64_t i = 0; i < out.elements(); ++i)
      values[static_cast<size_t>(i)] += b->double_at(i / out_size % dims[1]);
  }
  write_range<double>(out, 0, std::span<const double>(values));
  return single(std::move(out));
}

/// Sizes of a list input when all are known.
Status infer_col2im(InferContext& context) {
  std::optional<Shape> shape;
  const auto image = context.elements(1);
  const auto block = context.constant_ints(2);
  if (context.shape(0) && context.shape(0)->size() != 3) return context.error("needs an input of rank 3");
  const auto length = constant_length(context, 1);
  if (context.shape(0) && length) {
    shape = context.fresh_shape(static_cast<size_t>(*length) + 2, "image");
    (*shape)[0] = (*context.shape(0))[0];
    if (image) {
      for (size_t i = 0; i < image->size(); ++i) (*shape)[i + 2] = (*image)[i];
    }
    if (block) {
      Dim size = 1;
      for (int64_t b : *block) size = size * Dim(b);
      if (size == Dim(0)) return context.error("a block has no elements");
      (*shape)[1] = floor_div((*context.shape(0))[1], size);
    }
  }
  context.set_output(0, context.dtype(0), std::move(shape));
  return ok_status();
}

/// Adds up the columns of overlapping blocks at their places in the image.
EvalResult eval_col2im(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  DECANT_ASSIGN(const Dims image, read_int_list(node, *inputs[1], "the image shape"));
  DECANT_ASSIGN(const Dims block, read_int_list(node, *inputs[2], "the block shape"));
  if (x.rank() != 3 || image.empty() || block.size() != image.size()) {
    return node_error(node, fmt::format("{} does not fit an image of {} dims and blocks of {}", describe(x),
                                        image.size(), block.size()));
  }
  DECANT_ASSIGN(Window window, read_window(node, block));
  DECANT_ASSIGN(const Dims blocks, place(node, window, image));
  const int64_t taps = product(block, 0, block.size()), count = product(blocks, 0, blocks.size());
  if (x.dims()[1] % taps != 0 || x.dims()[2] != count) {
    return node_error(node,
                      fmt::format("{} does not fit {} blocks of {} elements", describe(x), count, taps));
  }
  Dims dims = {x.dims()[0], x.dims()[1] / taps};
  dims.insert(dims.end(), image.begin(), image.end());
  DECANT_ASSIGN(Tensor out, Tensor::allocate(x.dtype(), dims));
  const int64_t size = product(image, 0, image.size());
  with_compute_type(x.dtype(), [&](auto tag) {
    using C = typename decltype(tag)::type;
    const std::vector<C> in = read<C>(x);
    std::vector<C> values(static_cast<size_t>(out.elements()), C(0));
    Dims index(block.size(), 0);
    for (int64_t position = 0; position < count && out.elements() > 0;
         ++position, next_index(index, blocks)) {
      for_each_tap(window, image, index, [&](int64_t at, int64_t tap) {
        for (int64_t plane = 0; plane < dims[0] * dims[1]; ++plane) {
          values[static_cast<size_t>(plane * size + at)] +=
              in[static_cast<size_t>((plane * taps + tap) * count + position)];
        }
      });
    }
    write_range<C>(out, 0, std::span<const C>(values));
  });
  return single(std::move(out));
}

}  // namespace

DECANT_OP(ConvTranspose) {
  return {.name = "ConvTranspose",
          .doc = "Transposed convolution; output_shape, output_padding",
          .min_inputs = 2,
          .max_inputs = 3,
          .infer = infer_conv_transpose,
          .eval = eval_conv_transpose};
}

DECANT_OP(Col2Im) {
  return {.name = "Col2Im",
          .doc = "Sums column blocks into an image",
          .min_inputs = 3,
          .max_inputs = 3,
          .infer = infer_col2im,
          .eval = eval_col2im};
}

}  // namespace decant::ir
