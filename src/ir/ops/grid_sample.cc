#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "ir/ops/window.h"

namespace decant::ir {
namespace {

enum class Mode { kNearest, kLinear, kCubic };
enum class Padding { kZeros, kBorder, kReflection };

struct Options {
  Mode mode;
  Padding padding;
  bool align_corners;
};

Result<Options> read_options(const Node& node) {
  Options o;
  const std::string mode = node.string_attribute("mode", "linear");
  if (mode == "nearest") {
    o.mode = Mode::kNearest;
  } else if (mode == "linear") {
    o.mode = Mode::kLinear;
  } else if (mode == "cubic") {
    o.mode = Mode::kCubic;
  } else {
    return node_error(node, fmt::format("mode '{}'", mode));
  }
  const std::string padding = node.string_attribute("padding_mode", "zeros");
  if (padding == "zeros") {
    o.padding = Padding::kZeros;
  } else if (padding == "border") {
    o.padding = Padding::kBorder;
  } else if (padding == "reflection") {
    o.padding = Padding::kReflection;
  } else {
    return node_error(node, fmt::format("padding_mode '{}'", padding));
  }
  o.align_corners = node.int_attribute("align_corners", 0) != 0;
  return o;
}

Status infer_grid_sample(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 1, is_float, "a float tensor"));
  DECANT_ASSIGN([[maybe_unused]] const Options options, read_options(context.node()));
  std::optional<Shape> shape;
  if (context.shape(0) && context.shape(1)) {
    const Shape &x = *context.shape(0), &grid = *context.shape(1);
    if (x.size() < 3 || grid.size() != x.size()) {
      return context.error("needs an input [N, C, ...] and a grid [N, ..., axes] of one rank");
    }
    DECANT_ASSIGN(const Dim batch, merge_dims(context, x[0], grid[0]));
    DECANT_ASSIGN([[maybe_unused]] const Dim axes,
                  merge_dims(context, grid.back(), Dim(static_cast<int64_t>(x.size()) - 2)));
    shape = Shape{batch, x[1]};
    shape->insert(shape->end(), grid.begin() + 1, grid.end() - 1);
  }
  context.set_output(0, context.dtype(0), std::move(shape));
  return ok_status();
}

double reflect(double x, double low, double high) {
  const double range = high - low;
  if (range <= 0) return low;
  const double beyond = x < low ? low - x : x > high ? x - high : 0;
  if (beyond == 0) return x;
  const double turns = std::floor(beyond / range), rest = beyond - turns * range;
  const bool from_near = std::fmod(turns, 2) == 0;
  return (x < low) == from_near ? low + rest : high - rest;
}

/// Weights of input positions along one axis.
struct Taps {
  std::array<int64_t, 4> at;
  std::array<double, 4> weight;
  int count = 0;
};

/// Positions of normalized coordinate `n`; the arithmetic is that of the grid's precision, so that ties round
/// alike.
template <typename T>
Taps taps_at(const Options& o, double n, int64_t length) {
  const auto size = static_cast<T>(length);
  const T x = static_cast<T>(n);
  double at = o.align_corners ? (x + 1) / 2 * (size - 1) : ((x + 1) * size - 1) / 2;
  if (o.mode == Mode::kNearest) at = std::nearbyint(at);
  const double low = o.align_corners ? 0.0 : -0.5;
  const double high = o.align_corners ? static_cast<double>(length - 1) : static_cast<double>(length) - 0.5;
  Taps taps;
  // Positions this far out see padding only; the bound keeps the conversion to integers defined.
  if (!std::isfinite(at)) return taps;
  if (at < low || at > high) {
    if (o.padding == Padding::kBorder) at = std::clamp(at, 0.0, static_cast<double>(length - 1));
    if (o.padding == Padding::kReflection) at = reflect(at, low, high);
  }
  if (std::fabs(at) > 0x1p40) return taps;
  const double base = std::floor(at), part = at - base;
  const auto add = [&](double position, double weight) {
    if (o.padding == Padding::kBorder) position = std::clamp(position, 0.0, static_cast<double>(length - 1));
    if (o.padding == Padding::kReflection) position = std::trunc(reflect(position, low, high));
    if (position < 0 || position > static_cast<double>(length - 1)) return;
    const auto slot = static_cast<size_t>(taps.count++);
    taps.at[slot] = static_cast<int64_t>(position);
    taps.weight[slot] = weight;
  };
  if (o.mode == Mode::kNearest) {
    add(base, 1);
  } else if (o.mode == Mode::kLinear) {
    add(base, 1 - part);
    add(base + 1, part);
  } else {
    constexpr double a = -0.75;  // Keys' cubic convolution, as PyTorch
    const auto near = [&](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
    const auto far = [&](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
    add(base - 1, far(part + 1));
    add(base, near(part));
    add(base + 1, near(1 - part));
    add(base + 2, far(2 - part));
  }
  return taps;
}

EvalResult eval_grid_sample(const Node& node, EvalInputs inputs) {
  const Tensor &x = *inputs[0], &grid = *inputs[1];
  DECANT_ASSIGN(const Options o, read_options(node));
  const size_t axes = x.rank() < 3 ? 0 : x.rank() - 2;
  if (axes == 0 || grid.rank() != x.rank() || !is_float(grid.dtype()) ||
      grid.dims().back() != static_cast<int64_t>(axes) || grid.dims()[0] != x.dims()[0]) {
    return node_error(node, fmt::format("input {} and grid {} do not fit", describe(x), describe(grid)));
  }
  Dims dims = {x.dims()[0], x.dims()[1]};
  dims.insert(dims.end(), grid.dims().begin() + 1, grid.dims().end() - 1);
  DECANT_ASSIGN(Tensor out, Tensor::allocate(x.dtype(), dims));
  if (out.elements() == 0) return single(std::move(out));
  const std::vector<double> coordinates = read<double>(grid);
  const Dims spatial(x.dims().begin() + 2, x.dims().end());
  const int64_t in_size = product(spatial, 0, axes), out_size = product(dims, 2, dims.size()),
                channels = dims[1];
  if (in_size == 0) return node_error(node, "the input has no elements");
  const bool wide = grid.dtype() == DType::kFloat64;
  const auto sample = [&](auto tag) {
    using C = typename decltype(tag)::type;
    const std::vector<C> in = read<C>(x);
    std::vector<C> values(static_cast<size_t>(out.elements()), C(0));
    std::vector<Taps> taps(axes);
    for (int64_t p = 0; p < dims[0] * out_size; ++p) {
      Dims counts;
      bool none = false;
      for (size_t a = 0; a < axes; ++a) {
        // The grid names the last axis first.
        const double n = coordinates[static_cast<size_t>(p) * axes + (axes - 1 - a)];
        taps[a] = wide ? taps_at<double>(o, n, spatial[a]) : taps_at<float>(o, n, spatial[a]);
        counts.push_back(taps[a].count);
        none = none || taps[a].count == 0;
      }
      if (none) continue;
      Dims index(axes, 0);
      do {
        int64_t at = 0;
        double weight = 1;
        for (size_t a = 0; a < axes; ++a) {
          const auto i = static_cast<size_t>(index[a]);
          at = at * spatial[a] + taps[a].at[i];
          weight *= taps[a].weight[i];
        }
        for (int64_t c = 0; c < channels; ++c) {
          const int64_t plane = p / out_size * channels + c;
          values[static_cast<size_t>(plane * out_size + p % out_size)] +=
              static_cast<C>(weight) * in[static_cast<size_t>(plane * in_size + at)];
        }
      } while (next_index(index, counts));
    }
    write_range<C>(out, 0, std::span<const C>(values));
  };
  if (o.mode == Mode::kNearest)
    with_compute_type(x.dtype(), sample);
  else
    sample(std::type_identity<double>{});
  return single(std::move(out));
}

Status infer_affine_grid(InferContext& context) {
  DECANT_RETURN_IF_ERROR(require_dtype(context, 0, is_float, "a float tensor"));
  DECANT_RETURN_IF_ERROR(require_rank(context, 0, 3));
  std::optional<Shape> shape;
  if (const auto size = context.elements(1)) {
    if (size->size() != 4 && size->size() != 5)
      return context.error("the size must be [N, C, H, W] or [N, C, D, H, W]");
    shape = Shape{(*size)[0]};
    shape->insert(shape->end(), size->begin() + 2, size->end());
    shape->push_back(Dim(static_cast<int64_t>(size->size()) - 2));
  } else if (const auto length = constant_length(context, 1)) {
    shape = context.fresh_shape(static_cast<size_t>(std::clamp<int64_t>(*length, 2, 5)), "grid");
    shape->back() = Dim(*length - 2);
  }
  context.set_output(0, context.dtype(0), std::move(shape));
  return ok_status();
}

/// Coordinates in [-1, 1], the last axis first, times theta.
EvalResult eval_affine_grid(const Node& node, EvalInputs inputs) {
  const Tensor& theta = *inputs[0];
  DECANT_ASSIGN(const Dims size, read_int_list(node, *inputs[1], "the size"));
  const size_t axes = size.size() < 2 ? 0 : size.size() - 2;
  const auto n = static_cast<int64_t>(axes);
  if ((axes != 2 && axes != 3) || !is_float(theta.dtype()) || theta.dims() != Dims{size[0], n, n + 1}) {
    return node_error(node,
                      fmt::format("theta {} does not fit a size of {} dims", describe(theta), size.size()));
  }
  const bool align = node.int_attribute("align_corners", 0) != 0;
  const Dims spatial(size.begin() + 2, size.end());
  Dims dims = {size[0]};
  dims.insert(dims.end(), spatial.begin(), spatial.end());
  dims.push_back(n);
  DECANT_ASSIGN(Tensor out, Tensor::allocate(theta.dtype(), dims));
  if (out.elements() == 0) return single(std::move(out));
  const std::vector<double> matrix = read<double>(theta);
  std::vector<double> values;
  for (int64_t b = 0; b < size[0]; ++b) {
    Dims index(axes, 0);
    do {
      for (size_t row = 0; row < axes; ++row) {
        const double* factors = matrix.data() + (static_cast<size_t>(b) * axes + row) * (axes + 1);
        double sum = factors[axes];
        for (size_t a = 0; a < axes; ++a) {
          const auto i = static_cast<double>(index[a]), length = static_cast<double>(spatial[a]);
          const double aligned = length == 1 ? 0 : 2 * i / (length - 1) - 1;
          sum += factors[axes - 1 - a] * (align ? aligned : (2 * i + 1) / length - 1);
        }
        values.push_back(sum);
      }
    } while (next_index(index, spatial));
  }
  write_range<double>(out, 0, std::span<const double>(values));
  return single(std::move(out));
}

}  // namespace

DECANT_OP(GridSample) {
  return {.name = "GridSample",
          .doc = "Samples the input at grid positions: nearest, linear, cubic; zeros, border, reflection",
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = infer_grid_sample,
          .eval = eval_grid_sample};
}

DECANT_OP(AffineGrid) {
  return {.name = "AffineGrid",
          .doc = "Grid of an affine map, for GridSample",
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = infer_affine_grid,
          .eval = eval_affine_grid};
}

}  // namespace decant::ir
