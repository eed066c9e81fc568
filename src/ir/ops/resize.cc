#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "ir/ops/common.h"

namespace decant::ir {
namespace {

enum class Coordinates {
  kHalfPixel,
  kHalfPixelSymmetric,
  kPytorchHalfPixel,
  kAlignCorners,
  kAsymmetric,
  kTfHalfPixelForNn,
  kTfCropAndResize,
};
enum class Nearest { kRoundPreferFloor, kRoundPreferCeil, kFloor, kCeil };

struct Options {
  std::string mode;
  Coordinates coordinates;
  Nearest nearest;
  std::string policy;
  bool antialias, exclude_outside;
  double cubic_a, extrapolation;
};

Result<Options> read_options(const Node& node) {
  Options o;
  o.mode = node.string_attribute("mode", "nearest");
  if (o.mode != "nearest" && o.mode != "linear" && o.mode != "cubic") {
    return node_error(node, fmt::format("mode '{}'", o.mode));
  }
  const std::string coordinates = node.string_attribute("coordinate_transformation_mode", "half_pixel");
  if (coordinates == "half_pixel") {
    o.coordinates = Coordinates::kHalfPixel;
  } else if (coordinates == "half_pixel_symmetric") {
    o.coordinates = Coordinates::kHalfPixelSymmetric;
  } else if (coordinates == "pytorch_half_pixel") {
    o.coordinates = Coordinates::kPytorchHalfPixel;
  } else if (coordinates == "align_corners") {
    o.coordinates = Coordinates::kAlignCorners;
  } else if (coordinates == "asymmetric") {
    o.coordinates = Coordinates::kAsymmetric;
  } else if (coordinates == "tf_half_pixel_for_nn") {
    o.coordinates = Coordinates::kTfHalfPixelForNn;
  } else if (coordinates == "tf_crop_and_resize") {
    o.coordinates = Coordinates::kTfCropAndResize;
  } else {
    return node_error(node, fmt::format("coordinate_transformation_mode '{}'", coordinates));
  }
  const std::string nearest = node.string_attribute("nearest_mode", "round_prefer_floor");
  if (nearest == "round_prefer_floor") {
    o.nearest = Nearest::kRoundPreferFloor;
  } else if (nearest == "round_prefer_ceil") {
    o.nearest = Nearest::kRoundPreferCeil;
  } else if (nearest == "floor") {
    o.nearest = Nearest::kFloor;
  } else if (nearest == "ceil") {
    o.nearest = Nearest::kCeil;
  } else {
    return node_error(node, fmt::format("nearest_mode '{}'", nearest));
  }
  o.policy = node.string_attribute("keep_aspect_ratio_policy", "stretch");
  if (o.policy != "stretch" && o.policy != "not_larger" && o.policy != "not_smaller") {
    return node_error(node, fmt::format("keep_aspect_ratio_policy '{}'", o.policy));
  }
  o.antialias = node.int_attribute("antialias", 0) != 0;
  if (o.antialias && o.mode == "nearest") return node_error(node, "antialias needs mode linear or cubic");
  o.exclude_outside = node.int_attribute("exclude_outside", 0) != 0;
  o.cubic_a = node.float_attribute("cubic_coeff_a", -0.75f);
  o.extrapolation = node.float_attribute("extrapolation_value", 0.0f);
  return o;
}

Result<std::vector<size_t>> read_axes(const Node& node, size_t rank) {
  if (const auto* list = node.attribute<std::vector<int64_t>>("axes")) return resolve_axes(node, *list, rank);
  std::vector<size_t> axes;
  for (size_t i = 0; i < rank; ++i) axes.push_back(i);
  return axes;
}

/// One resized axis.
struct Axis {
  size_t axis;
  int64_t in, out;
  double scale;
  double roi_begin = 0, roi_end = 1;
};

/// Largest size that an axis may be scaled to.
constexpr double kMaxSize = 0x1p40;

Status set_scales(const Node& node, std::span<const double> scales, std::vector<Axis>& axes) {
  if (scales.size() != axes.size()) {
    return node_error(node, fmt::format("{} scales for {} axes", scales.size(), axes.size()));
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    const double out = std::floor(static_cast<double>(axes[i].in) * scales[i]);
    if (!(scales[i] > 0) || !(out < kMaxSize))
      return node_error(node, fmt::format("a scale of {}", scales[i]));
    axes[i].scale = scales[i];
    axes[i].out = static_cast<int64_t>(out);
  }
  return ok_status();
}

Status set_sizes(const Node& node, const std::string& policy, std::span<const int64_t> sizes,
                 std::vector<Axis>& axes) {
  if (sizes.size() != axes.size()) {
    return node_error(node, fmt::format("{} sizes for {} axes", sizes.size(), axes.size()));
  }
  double common = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (sizes[i] < 0 || static_cast<double>(sizes[i]) > kMaxSize || (axes[i].in == 0 && sizes[i] != 0)) {
      return node_error(node,
                        fmt::format("axis {} of {} cannot become {}", axes[i].axis, axes[i].in, sizes[i]));
    }
    axes[i].out = sizes[i];
    axes[i].scale = axes[i].in == 0 ? 1.0 : static_cast<double>(sizes[i]) / static_cast<double>(axes[i].in);
    const bool better = policy == "not_larger" ? axes[i].scale < common : axes[i].scale > common;
    if (i == 0 || better) common = axes[i].scale;
  }
  if (policy == "stretch") return ok_status();
  for (Axis& a : axes) {
    const double size = common * static_cast<double>(a.in);
    if (!(size < kMaxSize)) return node_error(node, "the scale is too large");
    a.scale = common;
    a.out = static_cast<int64_t>(std::floor(size + 0.5));
  }
  return ok_status();
}

/// The constant's elements as doubles when it is a small float one.
std::optional<std::vector<double>> constant_scales(const InferContext& context, size_t i) {
  const Value* v = context.input(i);
  if (v == nullptr || !v->constant || !v->constant->in_memory() || v->constant->elements() > 64)
    return std::nullopt;
  if (!is_float(v->constant->dtype())) return std::nullopt;
  return read<double>(v->constant->tensor());
}

bool is_empty(InferContext& context, size_t i) {
  return !context.has_input(i) || constant_length(context, i) == std::optional<int64_t>(0);
}

/// A dim scaled by a factor that is a whole number, or one over one, stays an expression.
Dim scaled(InferContext& context, const Dim& dim, double scale) {
  if (scale == 1) return dim;
  if (scale >= 1 && scale == std::floor(scale) && scale < 0x1p31)
    return dim * Dim(static_cast<int64_t>(scale));
  const double inverse = 1 / scale;
  if (inverse == std::floor(inverse) && inverse < 0x1p31 &&
      static_cast<double>(static_cast<float>(inverse)) == inverse)
    return floor_div(dim, Dim(static_cast<int64_t>(inverse)));
  return context.fresh_symbol("resize");
}

Status infer_resize(InferContext& context) {
  const Node& node = context.node();
  DECANT_ASSIGN(const Options options, read_options(node));
  const bool by_scales = !is_empty(context, 2), by_sizes = !is_empty(context, 3);
  if (by_scales && by_sizes && context.has_input(2) && constant_length(context, 2)) {
    return context.error("has both scales and sizes");
  }
  if (!by_scales && !by_sizes) return context.error("has neither scales nor sizes");
  if (!context.shape(0)) return infer_same(context);
  Shape shape = *context.shape(0);
  DECANT_ASSIGN(const std::vector<size_t> axes, read_axes(node, shape.size()));
  const auto sizes = by_sizes ? context.elements(3) : std::nullopt;
  const auto scales = by_scales ? constant_scales(context, 2) : std::nullopt;
  if (sizes && !by_scales && sizes->size() == axes.size()) {
    std::vector<Axis> known;
    std::vector<int64_t> wanted;
    for (size_t i = 0; i < axes.size(); ++i) {
      const Dim& in = shape[axes[i]];
      if (in.is_constant() && (*sizes)[i].is_constant()) {
        known.push_back({axes[i], in.constant(), 0, 1});
        wanted.push_back((*sizes)[i].constant());
      }
    }
    if (known.size() == axes.size()) {
      DECANT_RETURN_IF_ERROR(set_sizes(node, options.policy, wanted, known));
      for (const Axis& a : known) shape[a.axis] = Dim(a.out);
    } else {
      for (size_t i = 0; i < axes.size(); ++i) {
        shape[axes[i]] = options.policy == "stretch" ? (*sizes)[i] : context.fresh_symbol("resize");
      }
    }
  } else if (scales && scales->size() == axes.size()) {
    for (size_t i = 0; i < axes.size(); ++i) {
      Dim& dim = shape[axes[i]];
      if (dim.is_constant()) {
        std::vector<Axis> one = {{axes[i], dim.constant(), 0, 1}};
        DECANT_RETURN_IF_ERROR(set_scales(node, std::span(*scales).subspan(i, 1), one));
        dim = Dim(one[0].out);
      } else {
        dim = scaled(context, dim, (*scales)[i]);
      }
    }
  } else {
    for (size_t axis : axes) shape[axis] = context.fresh_symbol("resize");
  }
  context.set_output(0, context.dtype(0), std::move(shape));
  return ok_status();
}

/// Where output position `x` lies on the input axis.
double source_position(const Options& o, const Axis& a, double x) {
  const auto in = static_cast<double>(a.in);
  const double exact = a.scale * in;  // the output's length before it was cut to a whole number
  switch (o.coordinates) {
    case Coordinates::kAlignCorners:
      return exact == 1 ? 0 : x * (in - 1) / (exact - 1);
    case Coordinates::kAsymmetric:
      return x / a.scale;
    case Coordinates::kPytorchHalfPixel:
      return exact == 1 ? -0.5 : (x + 0.5) / a.scale - 0.5;
    case Coordinates::kTfHalfPixelForNn:
      return (x + 0.5) / a.scale;
    case Coordinates::kHalfPixelSymmetric:
      return in / 2 * (1 - static_cast<double>(a.out) / exact) + (x + 0.5) / a.scale - 0.5;
    case Coordinates::kTfCropAndResize: {
      const double width = (a.roi_end - a.roi_begin) * (in - 1);
      return a.roi_begin * (in - 1) + (exact == 1 ? width / 2 : x * width / (exact - 1));
    }
    default:
      return (x + 0.5) / a.scale - 0.5;
  }
}

int64_t nearest_index(Nearest mode, double position, int64_t length) {
  double rounded = 0;
  switch (mode) {
    case Nearest::kRoundPreferFloor:
      rounded = std::ceil(position - 0.5);
      break;
    case Nearest::kRoundPreferCeil:
      rounded = std::floor(position + 0.5);
      break;
    case Nearest::kFloor:
      rounded = std::floor(position);
      break;
    case Nearest::kCeil:
      rounded = std::ceil(position);
      break;
  }
  return static_cast<int64_t>(std::clamp(rounded, 0.0, static_cast<double>(length - 1)));
}

/// Keys' cubic convolution kernel.
double cubic(double x, double a) {
  x = std::fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

/// Input positions from `first` on and their weights; positions outside are read at the border.
struct Taps {
  int64_t first = 0;
  std::vector<double> weights;
};

/// When shrinking, antialias stretches the kernel by 1 / scale.
Taps taps_at(const Options& o, const Axis& a, double position) {
  const double stretch = o.antialias ? std::min(a.scale, 1.0) : 1.0;
  const double reach = (o.mode == "cubic" ? 2.0 : 1.0) / stretch;
  Taps taps;
  taps.first = static_cast<int64_t>(std::floor(position - reach)) + 1;
  const auto last = static_cast<int64_t>(std::ceil(position + reach)) - 1;
  double sum = 0;
  for (int64_t i = taps.first; i <= last; ++i) {
    const double distance = stretch * (static_cast<double>(i) - position);
    double weight = o.mode == "cubic" ? cubic(distance, o.cubic_a) : std::max(0.0, 1 - std::fabs(distance));
    if (o.exclude_outside && (i < 0 || i >= a.in)) weight = 0;
    taps.weights.push_back(weight);
    sum += weight;
  }
  if ((o.antialias || o.exclude_outside) && sum != 0) {
    for (double& w : taps.weights) w /= sum;
  }
  return taps;
}

bool is_outside(const Options& o, const Axis& a, double position) {
  return o.coordinates == Coordinates::kTfCropAndResize &&
         (position < 0 || position > static_cast<double>(a.in - 1));
}

bool is_identity(const Axis& a) {
  return a.in == a.out && std::fabs(a.scale - 1) < 1e-9 && a.roi_begin == 0 && a.roi_end == 1;
}

/// Interpolates along one axis.
std::vector<double> resize_axis(const Options& o, const Axis& a, int64_t outer, int64_t inner,
                                const std::vector<double>& in) {
  std::vector<double> out(static_cast<size_t>(outer * a.out * inner), 0.0);
  for (int64_t x = 0; x < a.out; ++x) {
    const double position = source_position(o, a, static_cast<double>(x));
    const bool outside = is_outside(o, a, position);
    const Taps taps = outside ? Taps() : taps_at(o, a, position);
    for (int64_t n = 0; n < outer; ++n) {
      double* to = out.data() + (n * a.out + x) * inner;
      if (outside) std::fill(to, to + inner, o.extrapolation);
      for (size_t t = 0; t < taps.weights.size(); ++t) {
        const int64_t at = std::clamp<int64_t>(taps.first + static_cast<int64_t>(t), 0, a.in - 1);
        const double* from = in.data() + (n * a.in + at) * inner;
        for (int64_t i = 0; i < inner; ++i) to[i] += taps.weights[t] * from[i];
      }
    }
  }
  return out;
}

/// Copies elements of any type; outside a crop the extrapolation value.
Result<Tensor> resize_nearest(const Options& o, const Tensor& x, const std::vector<Axis>& axes,
                              const Dims& dims) {
  DECANT_ASSIGN(Tensor out, Tensor::allocate(x.dtype(), dims));
  if (out.elements() == 0) return out;
  const Dims strides = strides_of(x.dims());
  std::vector<Dims> offsets(dims.size());  // in the input, for each position of each axis; -1 outside
  for (size_t d = 0; d < dims.size(); ++d) {
    for (int64_t i = 0; i < dims[d]; ++i) offsets[d].push_back(i * strides[d]);
  }
  for (const Axis& a : axes) {
    if (is_identity(a)) continue;
    for (int64_t i = 0; i < a.out; ++i) {
      const double position = source_position(o, a, static_cast<double>(i));
      offsets[a.axis][static_cast<size_t>(i)] =
          is_outside(o, a, position) ? -1 : nearest_index(o.nearest, position, a.in) * strides[a.axis];
    }
  }
  const std::vector<double> fill = {o.extrapolation};
  Dims index(dims.size(), 0);
  for (int64_t i = 0; i < out.elements(); ++i) {
    int64_t at = 0;
    bool outside = false;
    for (size_t d = 0; d < dims.size(); ++d) {
      const int64_t offset = offsets[d][static_cast<size_t>(index[d])];
      outside = outside || offset < 0;
      at += offset;
    }
    if (outside)
      write_range<double>(out, i, std::span<const double>(fill));
    else
      copy_elements(out, i, x, at, 1);
    for (size_t d = dims.size(); d-- > 0;) {
      if (++index[d] < dims[d]) break;
      index[d] = 0;
    }
  }
  return out;
}

Status set_roi(const Node& node, const Tensor* roi, std::vector<Axis>& axes) {
  if (roi == nullptr || roi->elements() != static_cast<int64_t>(2 * axes.size()) || !is_float(roi->dtype())) {
    return node_error(node, "tf_crop_and_resize needs a roi of a begin and an end for each axis");
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    axes[i].roi_begin = roi->double_at(static_cast<int64_t>(i));
    axes[i].roi_end = roi->double_at(static_cast<int64_t>(axes.size() + i));
    if (!std::isfinite(axes[i].roi_begin) || !std::isfinite(axes[i].roi_end))
      return node_error(node, "a roi is not finite");
  }
  return ok_status();
}

EvalResult eval_resize(const Node& node, EvalInputs inputs) {
  const Tensor& x = *inputs[0];
  DECANT_ASSIGN(const Options o, read_options(node));
  DECANT_ASSIGN(const std::vector<size_t> positions, read_axes(node, x.rank()));
  std::vector<Axis> axes;
  for (size_t p : positions) axes.push_back({p, x.dims()[p], 0, 1});
  const Tensor *scales = optional_input(inputs, 2), *sizes = optional_input(inputs, 3);
  if (scales != nullptr && scales->elements() == 0) scales = nullptr;
  if (sizes != nullptr && sizes->elements() == 0) sizes = nullptr;
  if ((scales == nullptr) == (sizes == nullptr)) return node_error(node, "needs either scales or sizes");
  if (scales != nullptr) {
    if (!is_float(scales->dtype()) || scales->elements() > 1024)
      return node_error(node, "scales must be a short float list");
    DECANT_RETURN_IF_ERROR(set_scales(node, read<double>(*scales), axes));
  } else {
    DECANT_ASSIGN(const Dims list, read_int_list(node, *sizes, "the sizes"));
    DECANT_RETURN_IF_ERROR(set_sizes(node, o.policy, list, axes));
  }
  if (o.coordinates == Coordinates::kTfCropAndResize) {
    DECANT_RETURN_IF_ERROR(set_roi(node, optional_input(inputs, 1), axes));
  }
  Dims dims = x.dims();
  for (const Axis& a : axes) dims[a.axis] = a.out;
  if (o.mode == "nearest" || x.elements() == 0) return single(resize_nearest(o, x, axes, dims));
  DECANT_ASSIGN(Tensor out, Tensor::allocate(x.dtype(), dims));
  std::vector<double> values = read<double>(x);
  Dims now = x.dims();
  for (const Axis& a : axes) {
    if (is_identity(a)) continue;
    values = resize_axis(o, a, product(now, 0, a.axis), product(now, a.axis + 1, now.size()), values);
    now[a.axis] = a.out;
  }
  if (is_integer(x.dtype())) {
    const IntegerRange range = integer_range(x.dtype());
    for (double& v : values)
      v = std::clamp(v, static_cast<double>(range.min), static_cast<double>(range.max));
  }
  write_range<double>(out, 0, std::span<const double>(values));
  return single(std::move(out));
}

}  // namespace

DECANT_OP(Resize) {
  return {
      .name = "Resize",
      .doc = "Resamples axes: nearest, linear, cubic; all coordinate modes, antialias, aspect ratio policies",
      .min_inputs = 1,
      .max_inputs = 4,
      .infer = infer_resize,
      .eval = eval_resize};
}

}  // namespace decant::ir
