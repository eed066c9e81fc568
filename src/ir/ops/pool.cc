#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "ir/ops/window.h"

namespace decant::ir {
namespace {

bool is_max_pool_type(DType t) { return is_float(t) || t == DType::kInt8 || t == DType::kUInt8; }

Status infer_pool_as(InferContext& context, size_t outputs) {
  const Node& node = context.node();
  const auto kernel = kernel_shape(node);
  if (!kernel) return context.error("'kernel_shape' is missing");
  DECANT_ASSIGN(const Window window, read_window(node, *kernel));
  std::optional<Shape> shape = context.shape(0);
  if (shape) {
    if (shape->size() != window.rank() + 2)
      return context.error("'kernel_shape' does not fit the input's rank");
    for (size_t a = 0; a < window.rank(); ++a) {
      Dim& dim = (*shape)[a + 2];
      dim = window_outputs(&context.graph(), window, a, dim);
      if (dim.is_constant() && dim.constant() < 0) {
        return context.error(fmt::format("the kernel does not fit axis {}", a + 2));
      }
    }
  }
  context.set_output(0, context.dtype(0), shape);
  if (outputs > 1) context.set_output(1, DType::kInt64, std::move(shape));
  return ok_status();
}

Status infer_pool(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_float, "a float tensor"));
  return infer_pool_as(context, 1);
}

Status infer_max_pool(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_max_pool_type, "a float, int8 or uint8 tensor"));
  return infer_pool_as(context, 2);
}

struct Problem {
  Window window;
  Dims spatial, out_spatial, dims;
  int64_t planes, in_size, out_size;
};

Result<Problem> plan(const Node& node, const Tensor& x) {
  const auto kernel = kernel_shape(node);
  if (!kernel || x.rank() != kernel->size() + 2) {
    return node_error(node, fmt::format("'kernel_shape' does not fit {}", describe(x)));
  }
  Problem p;
  DECANT_ASSIGN(p.window, read_window(node, *kernel));
  p.spatial.assign(x.dims().begin() + 2, x.dims().end());
  DECANT_ASSIGN(p.out_spatial, place(node, p.window, p.spatial));
  p.dims = {x.dims()[0], x.dims()[1]};
  p.dims.insert(p.dims.end(), p.out_spatial.begin(), p.out_spatial.end());
  p.planes = product(x.dims(), 0, 2);
  p.in_size = product(p.spatial, 0, p.spatial.size());
  p.out_size = product(p.out_spatial, 0, p.out_spatial.size());
  return p;
}

/// Calls f(position, index of the window, offsets of its taps) for each output position of a plane.
template <typename F>
void for_each_window(const Problem& p, F&& f) {
  std::vector<int64_t> taps;
  Dims index(p.window.rank(), 0);
  for (int64_t position = 0; position < p.out_size; ++position) {
    taps.clear();
    for_each_tap(p.window, p.spatial, index, [&](int64_t at, int64_t) { taps.push_back(at); });
    f(position, index, taps);
    next_index(index, p.out_spatial);
  }
}

/// Taps of a window that lie in the input or its declared padding (a partial window of ceil mode reaches
/// further).
int64_t padded_taps(const Problem& p, const Dims& index) {
  int64_t count = 1;
  for (size_t a = 0; a < p.window.rank(); ++a) {
    const int64_t first = index[a] * p.window.strides[a], dilation = p.window.dilations[a];
    const int64_t room = p.spatial[a] + p.window.begin[a] + p.window.end[a] - first;
    count *= std::min(p.window.kernel[a], (room + dilation - 1) / dilation);
  }
  return count;
}

EvalResult eval_average_pool(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  if (!is_float(x.dtype())) return node_error(node, "needs a float tensor");
  DECANT_ASSIGN(const Problem p, plan(node, x));
  const bool include_pad = node.int_attribute("count_include_pad", 0) != 0;
  const std::vector<double> in = read<double>(x);
  DECANT_ASSIGN(Tensor out, Tensor::allocate(x.dtype(), p.dims));
  std::vector<double> values(static_cast<size_t>(out.elements()));
  for_each_window(p, [&](int64_t position, const Dims& index, const std::vector<int64_t>& taps) {
    const auto count =
        static_cast<double>(include_pad ? padded_taps(p, index) : static_cast<int64_t>(taps.size()));
    for (int64_t plane = 0; plane < p.planes; ++plane) {
      double sum = 0;
      for (int64_t at : taps) sum += in[static_cast<size_t>(plane * p.in_size + at)];
      values[static_cast<size_t>(plane * p.out_size + position)] = sum / count;
    }
  });
  write_range<double>(out, 0, std::span<const double>(values));
  return single(std::move(out));
}

Result<double> read_power(const Node& node) {
  const int64_t p = node.int_attribute("p", 2);
  if (p < 1) return node_error(node, fmt::format("p = {}", p));
  return static_cast<double>(p);
}

EvalResult eval_lp_pool(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  if (!is_float(x.dtype())) return node_error(node, "needs a float tensor");
  DECANT_ASSIGN(const Problem p, plan(node, x));
  DECANT_ASSIGN(const double power, read_power(node));
  const std::vector<double> in = read<double>(x);
  DECANT_ASSIGN(Tensor out, Tensor::allocate(x.dtype(), p.dims));
  std::vector<double> values(static_cast<size_t>(out.elements()));
  for_each_window(p, [&](int64_t position, const Dims&, const std::vector<int64_t>& taps) {
    for (int64_t plane = 0; plane < p.planes; ++plane) {
      double sum = 0;
      for (int64_t at : taps)
        sum += std::pow(std::fabs(in[static_cast<size_t>(plane * p.in_size + at)]), power);
      values[static_cast<size_t>(plane * p.out_size + position)] = std::pow(sum, 1 / power);
    }
  });
  write_range<double>(out, 0, std::span<const double>(values));
  return single(std::move(out));
}

/// Offsets within a plane counted with the first spatial axis fastest.
int64_t column_major(int64_t offset, const Dims& spatial) {
  int64_t out = 0;
  for (size_t a = spatial.size(); a-- > 0;) {
    int64_t before = 1;
    for (size_t b = 0; b < a; ++b) before *= spatial[b];
    out += offset % spatial[a] * before;
    offset /= spatial[a];
  }
  return out;
}

/// Indices count through the whole tensor. A window of padding only gives the type's lowest value and index
/// -1.
EvalResult eval_max_pool(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  if (!is_max_pool_type(x.dtype())) return node_error(node, "needs a float, int8 or uint8 tensor");
  DECANT_ASSIGN(const Problem p, plan(node, x));
  const bool columns = node.int_attribute("storage_order", 0) != 0;
  const std::vector<double> in = read<double>(x);
  DECANT_ASSIGN(Tensor out, Tensor::allocate(x.dtype(), p.dims));
  DECANT_ASSIGN(Tensor indices, Tensor::allocate(DType::kInt64, p.dims));
  std::vector<double> values(static_cast<size_t>(out.elements()));
  const double lowest = is_float(x.dtype()) ? -std::numeric_limits<double>::infinity()
                                            : static_cast<double>(integer_range(x.dtype()).min);
  for_each_window(p, [&](int64_t position, const Dims&, const std::vector<int64_t>& taps) {
    for (int64_t plane = 0; plane < p.planes; ++plane) {
      double best = lowest;
      int64_t where = -1;
      for (int64_t at : taps) {
        const double value = in[static_cast<size_t>(plane * p.in_size + at)];
        if (where >= 0 && !(value > best || std::isnan(value))) continue;
        best = value;
        where = at;
      }
      values[static_cast<size_t>(plane * p.out_size + position)] = best;
      if (where >= 0) where = plane * p.in_size + (columns ? column_major(where, p.spatial) : where);
      indices.mutable_data_as<int64_t>()[plane * p.out_size + position] = where;
    }
  });
  write_range<double>(out, 0, std::span<const double>(values));
  std::vector<Tensor> results(std::max<size_t>(1, node.outputs().size()));
  results[0] = std::move(out);
  if (results.size() > 1) results[1] = std::move(indices);
  return results;
}

Status infer_global_pool(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_float, "a float tensor"));
  std::optional<Shape> shape = context.shape(0);
  if (shape) {
    if (shape->size() < 2) return context.error("needs an input [N, C, ...]");
    std::fill(shape->begin() + 2, shape->end(), Dim(1));
  }
  context.set_output(0, context.dtype(0), std::move(shape));
  return ok_status();
}

/// f(span of one plane) gives its value.
template <typename F>
EvalResult pool_planes(const Node& node, const Tensor& x, F&& f) {
  if (!is_float(x.dtype()) || x.rank() < 2) return node_error(node, "needs a float tensor [N, C, ...]");
  Dims dims = x.dims();
  std::fill(dims.begin() + 2, dims.end(), 1);
  const int64_t size = product(x.dims(), 2, x.rank());
  if (size == 0) return node_error(node, "the spatial dims have no elements");
  const std::vector<double> in = read<double>(x);
  std::vector<double> values;
  for (int64_t plane = 0; plane < product(x.dims(), 0, 2); ++plane) {
    values.push_back(f(std::span(in).subspan(static_cast<size_t>(plane * size), static_cast<size_t>(size))));
  }
  return single(make_tensor<double>(x.dtype(), dims, values));
}

EvalResult eval_global_average_pool(const Node& node, EvalInputs inputs) {
  return pool_planes(node, *inputs[0], [](std::span<const double> plane) {
    double sum = 0;
    for (double v : plane) sum += v;
    return sum / static_cast<double>(plane.size());
  });
}

EvalResult eval_global_max_pool(const Node& node, EvalInputs inputs) {
  return pool_planes(node, *inputs[0], [](std::span<const double> plane) {
    double best = plane[0];
    for (double v : plane) {
      if (v > best || std::isnan(v)) best = v;
    }
    return best;
  });
}

EvalResult eval_global_lp_pool(const Node& node, EvalInputs inputs) {
  DECANT_ASSIGN(const double power, read_power(node));
  return pool_planes(node, *inputs[0], [&](std::span<const double> plane) {
    double sum = 0;
    for (double v : plane) sum += std::pow(std::fabs(v), power);
    return std::pow(sum, 1 / power);
  });
}

/// Output positions of MaxUnpool without `output_shape`: the windows laid side by side, pads cut off.
Dim unpooled(const Window& w, size_t axis, const Dim& input) {
  return (input - Dim(1)) * Dim(w.strides[axis]) + Dim(w.kernel[axis] - w.begin[axis] - w.end[axis]);
}

Status infer_max_unpool(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_float, "a float tensor"));
  const auto kernel = kernel_shape(context.node());
  if (!kernel) return context.error("'kernel_shape' is missing");
  DECANT_ASSIGN(const Window window, read_window(context.node(), *kernel));
  std::optional<Shape> shape = context.shape(0);
  if (shape && shape->size() != window.rank() + 2) {
    return context.error("'kernel_shape' does not fit the input's rank");
  }
  if (shape && context.has_input(2)) {
    if (auto elements = context.elements(2)) {
      if (elements->size() != shape->size())
        return context.error("'output_shape' does not fit the input's rank");
      shape = std::move(*elements);
    } else {
      shape = context.fresh_shape(shape->size(), "unpool");
    }
  } else if (shape) {
    for (size_t a = 0; a < window.rank(); ++a) (*shape)[a + 2] = unpooled(window, a, (*shape)[a + 2]);
  }
  context.set_output(0, context.dtype(0), std::move(shape));
  return ok_status();
}

/// Indices count through the default shape; a larger `output_shape` adds zeros behind it.
EvalResult eval_max_unpool(const Node& node, EvalInputs inputs) {
  const Tensor &x = *inputs[0], &indices = *inputs[1];
  const auto kernel = kernel_shape(node);
  if (!is_float(x.dtype()) || indices.dtype() != DType::kInt64 || indices.dims() != x.dims()) {
    return node_error(node, "needs a float tensor and int64 indices of one shape");
  }
  if (!kernel || x.rank() != kernel->size() + 2)
    return node_error(node, "'kernel_shape' does not fit the input");
  DECANT_ASSIGN(const Window window, read_window(node, *kernel));
  Dims dims = x.dims();
  for (size_t a = 0; a < window.rank(); ++a) {
    const auto size = unpooled(window, a, Dim(dims[a + 2])).as_constant();
    if (!size || *size < 0) return node_error(node, "the pads leave no output");
    dims[a + 2] = *size;
  }
  DECANT_ASSIGN(Tensor flat, Tensor::allocate(x.dtype(), dims));
  std::vector<double> values(static_cast<size_t>(flat.elements()), 0.0);
  for (int64_t i = 0; i < x.elements(); ++i) {
    const int64_t at = indices.int_at(i);
    if (at < 0 || at >= flat.elements()) return node_error(node, fmt::format("index {} is out of range", at));
    values[static_cast<size_t>(at)] = x.double_at(i);
  }
  write_range<double>(flat, 0, std::span<const double>(values));
  const Tensor* shape = optional_input(inputs, 2);
  if (shape == nullptr) return single(std::move(flat));
  DECANT_ASSIGN(const Dims wanted, read_int_list(node, *shape, "the output shape"));
  if (wanted.size() != dims.size()) return node_error(node, "'output_shape' does not fit the input's rank");
  for (size_t a = 0; a < dims.size(); ++a) {
    if (wanted[a] < dims[a]) return node_error(node, "'output_shape' is smaller than the windows");
  }
  DECANT_ASSIGN(Tensor out, Tensor::allocate(x.dtype(), wanted));
  write_range<double>(out, 0, std::vector<double>(static_cast<size_t>(out.elements()), 0.0));
  if (flat.elements() > 0) strided_write(out, strides_of(wanted), 0, flat);
  return single(std::move(out));
}

}  // namespace

DECANT_OP(AveragePool) {
  return {.name = "AveragePool",
          .doc = "Mean of each window",
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = infer_pool,
          .eval = eval_average_pool};
}

DECANT_OP(MaxPool) {
  return {.name = "MaxPool",
          .doc = "Largest value of each window, and its index",
          .min_inputs = 1,
          .max_inputs = 1,
          .max_outputs = 2,
          .infer = infer_max_pool,
          .eval = eval_max_pool};
}

DECANT_OP(LpPool) {
  return {.name = "LpPool",
          .doc = "p-norm of each window",
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = infer_pool,
          .eval = eval_lp_pool};
}

DECANT_OP(GlobalAveragePool) {
  return {.name = "GlobalAveragePool",
          .doc = "Mean over all spatial axes",
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = infer_global_pool,
          .eval = eval_global_average_pool};
}

DECANT_OP(GlobalMaxPool) {
  return {.name = "GlobalMaxPool",
          .doc = "Largest value over all spatial axes",
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = infer_global_pool,
          .eval = eval_global_max_pool};
}

DECANT_OP(GlobalLpPool) {
  return {.name = "GlobalLpPool",
          .doc = "p-norm over all spatial axes",
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = infer_global_pool,
          .eval = eval_global_lp_pool};
}

DECANT_OP(MaxUnpool) {
  return {.name = "MaxUnpool",
          .doc = "Puts the values of a MaxPool back at their indices, zeros elsewhere",
          .min_inputs = 2,
          .max_inputs = 3,
          .infer = infer_max_unpool,
          .eval = eval_max_unpool};
}

}  // namespace decant::ir
